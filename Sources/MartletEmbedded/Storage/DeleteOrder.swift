import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// The order in which a set's records are deleted.
///
/// ON DELETE CASCADE follows references from a deleted record, at most a thousand levels deep in
/// SQLite. If the set names the records below as well, they are deleted first.
struct DeleteOrder {
    let session: EmbeddedSession
    let plan: SetPlan
    let facts: SetFacts

    /// The number of records that may form a chain deeper than SQLite goes.
    private static let fewest = 500

    /// Returns the deletes. If they are many, each record is before those to which it refers.
    /// Records of a circle keep the set's order.
    ///
    /// - Complexity: O(*n*) with one look-up for each of *n* deletes; no look-up if they are few.
    func deletes() throws(SQLiteError) -> [SetPlan.Change] {
        let deletes = plan.deletes
        guard deletes.count > Self.fewest else { return deletes }
        var indices: [RecordAddress: Int] = [:]
        for (index, change) in deletes.enumerated() {
            indices[facts.permanentAddress(of: change.address)] = index
        }
        var parents: [[Int]] = []
        var children = [Int](repeating: 0, count: deletes.count)
        for (index, change) in deletes.enumerated() {
            let own = try self.parents(of: change, in: indices).filter { $0 != index }
            for parent in own { children[parent] += 1 }
            parents.append(own)
        }
        var order = children.indices.filter { children[$0] == 0 }
        var next = 0
        while next < order.count {
            for parent in parents[order[next]] {
                children[parent] -= 1
                if children[parent] == 0 { order.append(parent) }
            }
            next += 1
        }
        order += children.indices.filter { children[$0] > 0 }
        return order.map { deletes[$0] }
    }

    /// Returns the indices of the records to which a record refers.
    private func parents(
        of change: SetPlan.Change, in indices: [RecordAddress: Int]
    ) throws(SQLiteError) -> [Int] {
        let references = session.schema.types[change.type].references
        guard !references.isEmpty else { return [] }
        let id = facts.permanentAddress(of: change.address).id
        let held = try session.tables[change.type].read(id, references.map(\.attribute))
        return references.compactMap { reference in
            guard let target = session.schema.index(of: reference.target),
                let value = held?[reference.attribute], let id = RecordID(value)
            else { return nil }
            return indices[RecordAddress(target, id)]
        }
    }
}
