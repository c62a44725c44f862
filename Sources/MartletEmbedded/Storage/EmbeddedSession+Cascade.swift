import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

extension EmbeddedSession {
    /// Returns the effects of the ON DELETE actions of a set's deletes, after its updates; nil if
    /// they are more than one set may have.
    ///
    /// The search goes breadth first from the deleted records. A record that the set moves
    /// elsewhere is not reached through the reference that it gives up. A record that the set moves
    /// under a deleted one is reached.
    ///
    /// - Parameters:
    ///   - deleted: The permanent ids.
    ///   - updated: The attributes by permanent id, with references as permanent ids.
    ///   - most: The most records to find; nil for as many as one set may change.
    ///   - rights: The rights of a principal. The search then goes on only from records that he sees, and
    ///     finds only such records; nil for all.
    func affected(
        byDeleting deleted: [RecordAddress], updating updated: [RecordAddress: Attributes],
        most: Int? = nil, for rights: RowRights? = nil
    ) throws(SQLiteError) -> [AffectedRow]? {
        let most = most ?? bound.mostAffected
        var moved = MovedReferences(try followed(updated)) {
            columns[$0].references.map(\.attribute)
        }
        defer { updateLooks += moved.looks }
        var removed = Set(deleted)
        var queue = deleted.filter { !cascades.links(from: $0.type).isEmpty }
        var next = 0
        var judged = 0
        var found: [AffectedRow] = []
        while next < queue.count {
            if let rights, next == judged {
                // All records of a level are in the queue.
                let seen = try visible(queue[judged...], rights)
                queue.removeSubrange(judged...)
                queue += seen
                judged = queue.count
                continue
            }
            let parent = queue[next]
            next += 1
            for link in cascades.links(from: parent.type) {
                for child in try children(of: parent.id, link, &moved) {
                    guard link.reference.onDelete == .cascade else {
                        found.append(
                            try affectedRow(
                                child,
                                .changed(attribute: link.reference.attribute, held: parent.id)))
                        continue
                    }
                    guard removed.insert(child).inserted else { continue }
                    found.append(try affectedRow(child, .removed))
                    if !cascades.links(from: child.type).isEmpty { queue.append(child) }
                }
                guard found.count <= most else { return nil }
            }
        }
        guard let rights else { return found }
        let seen = Set(try visible(found.map(\.address)[...], rights))
        return found.filter { seen.contains($0.address) }
    }

    /// Returns the records that a principal may see, in their order.
    private func visible(
        _ addresses: ArraySlice<RecordAddress>, _ rights: RowRights
    ) throws(SQLiteError) -> [RecordAddress] {
        let seen = try rights.visible(Array(addresses), read: ruleRows(of:where:isAmong:))
        return addresses.filter { seen.contains($0) }
    }

    /// Returns the updates with each reference by a text key as the key of the record that SQLite
    /// finds for it, because the key may have a collation.
    private func followed(
        _ updated: [RecordAddress: Attributes]
    ) throws(SQLiteError) -> [RecordAddress: Attributes] {
        var followed = updated
        for (address, attributes) in updated {
            for (attribute, target) in columns[address.type].references
            where schema.types[target].keyKind == .text {
                guard let index = attributes.names.firstIndex(of: attribute),
                    let id = RecordID(attributes.values[index]),
                    let met = try tables[target].equal(to: id), met != id
                else { continue }
                followed[address]?.setValue(met.value, at: index)
            }
        }
        return followed
    }

    /// Returns the records of a link's type that refer to a record. SQLite follows references by a
    /// text key's collation, if it has one.
    private func referring(
        to parent: RecordID, _ link: CascadeMap.Link
    ) throws(SQLiteError) -> [RecordID] {
        let (table, reference) = (tables[link.type], link.reference)
        guard case .text = parent, let target = schema.index(of: reference.target),
            try tables[target].exists(parent)
        else { return try table.ids(where: reference, holds: parent) }
        return try table.ids(where: reference, meets: parent, of: schema.types[target])
    }

    private func affectedRow(
        _ address: RecordAddress, _ effect: AffectedRow.Effect
    ) throws(SQLiteError) -> AffectedRow {
        AffectedRow(
            address: address, effect: effect, facts: try rowFacts(address),
            isSendable: isSendable(address))
    }

    /// Returns whether devices can receive a row with this key.
    func isSendable(_ address: RecordAddress) -> Bool {
        SendableKey.fault(
            of: address.id, schema.types[address.type], greatest: Limits.greatestKey) == nil
    }

    /// Returns the records that refer to a record through a link, after the set's updates.
    private func children(
        of parent: RecordID, _ link: CascadeMap.Link, _ moved: inout MovedReferences
    ) throws(SQLiteError) -> [RecordAddress] {
        let attribute = link.reference.attribute
        var children: [RecordAddress] = []
        for id in try referring(to: parent, link) {
            let child = RecordAddress(link.type, id)
            if let value = moved.value(of: attribute, of: child), value != parent.value { continue }
            children.append(child)
        }
        let holders = moved.holders(of: parent, type: link.type, attribute: attribute)
        guard !holders.isEmpty else { return children }
        let known = Set(children)
        return children + holders.filter { !known.contains($0) }
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

    /// Notes that a record was made under the key of a deleted one.
    func noteRemade(_ address: RecordAddress, at revision: Revision) throws(SQLiteError) {
        let statement = try connection.statement(
            "INSERT OR IGNORE INTO martlet_announced (revision, type, id) VALUES (?1, ?2, ?3)")
        defer { statement.reset() }
        statement.bind(1, integer: revision)
        statement.bind(2, integer: ViewScan.remadeType(numbers[address.type]))
        statement.bind(3, address.id)
        try statement.run()
    }
}
