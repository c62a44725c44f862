import MartletCore
import MartletProtocol
import SQLiteKit
import SQLiteRecords

extension EmbeddedSession {
    /// What the ON DELETE actions of a set's deletes would do, once its updates are done.
    ///
    /// Breadth first from the deleted records. A record the set moves elsewhere is not reached
    /// through the reference it gives up; one it moves under a deleted record is.
    /// - Parameters:
    ///   - deleted: Permanent ids.
    ///   - updated: Permanent ids, with references as permanent ids.
    func affected(
        byDeleting deleted: [RecordAddress], updating updated: [RecordAddress: Attributes]
    ) throws(SQLiteError) -> [AffectedRow] {
        var removed = Set(deleted)
        var queue = deleted.filter { !cascades.links(from: $0.type).isEmpty }
        var next = 0
        var found: [AffectedRow] = []
        while next < queue.count {
            let parent = queue[next]
            next += 1
            for link in cascades.links(from: parent.type) {
                let attribute = link.reference.attribute
                var children: [RecordAddress] = []
                for id in try tables[link.type].ids(where: link.reference, holds: parent.id) {
                    let child = RecordAddress(link.type, id)
                    if let moved = updated[child]?[attribute], moved != parent.id.value { continue }
                    children.append(child)
                }
                for (child, attributes) in updated
                where child.type == link.type && attributes[attribute] == parent.id.value {
                    if !children.contains(child) { children.append(child) }
                }
                for child in children {
                    guard link.reference.onDelete == .cascade else {
                        found.append(
                            AffectedRow(
                                address: child,
                                effect: .changed(attribute: attribute, held: parent.id),
                                facts: try rowFacts(child)))
                        continue
                    }
                    guard removed.insert(child).inserted else { continue }
                    found.append(
                        AffectedRow(
                            address: child, effect: .removed, facts: try rowFacts(child)))
                    if !cascades.links(from: child.type).isEmpty { queue.append(child) }
                }
            }
        }
        return found
    }

    func rowFacts(_ address: RecordAddress) throws(SQLiteError) -> RowFacts? {
        let statement = try connection.statement(
            """
            SELECT revision, author, others, deleted FROM martlet_records \
            WHERE type = ?1 AND id = ?2
            """)
        defer { statement.reset() }
        statement.bind(1, integer: numbers[address.type])
        statement.bind(2, address.id)
        guard try statement.step() else { return nil }
        return RowFacts(
            revision: statement.integer(0), author: statement.integer(1),
            others: statement.integer(2), isDeleted: statement.integer(3) != 0)
    }

    func store(_ facts: RowFacts, of address: RecordAddress) throws(SQLiteError) {
        let statement = try connection.statement(
            """
            INSERT OR REPLACE INTO martlet_records (type, id, revision, author, others, deleted) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """)
        defer { statement.reset() }
        statement.bind(1, integer: numbers[address.type])
        statement.bind(2, address.id)
        statement.bind(3, integer: facts.revision)
        statement.bind(4, integer: facts.author)
        statement.bind(5, integer: facts.others)
        statement.bind(6, integer: facts.isDeleted ? 1 : 0)
        try statement.run()
    }
}
