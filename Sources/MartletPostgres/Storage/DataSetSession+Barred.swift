import MartletModel
import MartletServerCore
import PostgresKit

/// Handles tables that another transaction has locked completely (ALTER TABLE, LOCK TABLE,
/// TRUNCATE), so that no session can even read them. The store puts off sets that need them, and
/// carries out all others. External writes stay noted until the lock is gone.
extension DataSetSession {
    /// Notes that a statement outside all sets could not get a lock, perhaps one on a whole table.
    /// - Returns: Whether to begin the batch again; it then knows the locked tables.
    func bars(_ error: PostgresError) -> Bool {
        guard error.sqlState == "55P03", !barring.isDone else { return false }
        barring.isDue = true
        isOutdated = true
        return true
    }

    func lookForLocks() throws(PostgresError) {
        let names = try TableLocks.read(connection)
        barred = Set(tables.indices.filter { names.contains(schema.types[$0].name) })
    }

    /// Returns whether deleting a record of the type requires reading a locked table.
    func reachesBarred(deletingFrom type: Int) -> Bool {
        guard !barred.isEmpty else { return false }
        var reached: Set<Int> = [type]
        var queue = [type]
        while let next = queue.popLast() {
            if barred.contains(next) { return true }
            for link in model.cascades.links(from: next) where reached.insert(link.type).inserted {
                queue.append(link.type)
            }
        }
        return false
    }

    /// Returns whether a set cannot be carried out before a lock is gone.
    func isBarred(_ work: SetWork) -> Bool {
        guard !barred.isEmpty else { return false }
        return work.plan.types.contains { barred.contains($0) }
            || work.facts.affected.contains { barred.contains($0.address.type) }
            || work.plan.deletes.contains { reachesBarred(deletingFrom: $0.type) }
    }
}
