package import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Shows the state of the store to the simulator.
extension DeviceStore {
    /// A change set in the queue.
    package struct Queued {
        package let identifier: String
        /// The confirmed revision of every record that it touches and that has one.
        package let seen: [(type: String, id: RecordID, revision: Revision)]
        /// The earlier sets whose edits of these records show in place of the confirmed values.
        package let beneath: [(type: String, id: RecordID, identifier: String)]
    }

    /// Whether there are external writes that no set contains yet.
    package var hasOpenCapture: Bool { get throws { try applying.hasCapture } }

    /// Returns the queued sets, in their order.
    package func queued() throws -> [Queued] {
        let outbox = Outbox(store: applying)
        return try outbox.queued().map { try queued($0, outbox) }
    }

    /// Returns the set queued last; nil if the queue is empty.
    package func newestQueued() throws -> Queued? {
        let outbox = Outbox(store: applying)
        return try outbox.queued().last.map { try queued($0, outbox) }
    }

    private func queued(_ set: QueuedSet, _ outbox: Outbox) throws -> Queued {
        var seen: [(type: String, id: RecordID, revision: Revision)] = []
        var beneath: [(type: String, id: RecordID, identifier: String)] = []
        let find = try applying.connection.statement(
            """
            SELECT identifier FROM martlet_changes JOIN martlet_outbox USING (sequence)
            WHERE type = ? AND id = ? AND applied = 1 AND sequence < ? ORDER BY sequence DESC LIMIT 1
            """)
        defer { find.reset() }
        for change in try outbox.changes(of: set.sequence) {
            let name = try applying.typeName(ofNumber: change.number)
            if let revision = try outbox.confirmedRevision(change.number, change.id) {
                seen.append((name, change.id, revision))
            }
            find.rewind()
            find.bind(1, integer: change.number)
            find.bind(2, change.id)
            find.bind(3, integer: set.sequence)
            if try find.step() { beneath.append((name, change.id, find.text(0))) }
        }
        return Queued(identifier: set.identifier, seen: seen, beneath: beneath)
    }

    /// Returns the records that the server has sent and no table shows.
    package func unshown() throws -> [(type: String, id: RecordID)] {
        let find = """
            SELECT type, id FROM martlet_quarantine UNION SELECT type, id FROM martlet_aside
            """
        let rows = try applying.connection.statement(find)
        defer { rows.reset() }
        var found: [(type: String, id: RecordID)] = []
        while try rows.step() {
            let (name, id) = (rows.text(0), try rows.recordID(1))
            let type = applying.schema.index(of: name)
            if try type.map({ try applying.tables[$0].exists(id) }) ?? false { continue }
            found.append((name, id))
        }
        return found
    }

    /// One record's part of a change set in the queue.
    package struct QueuedChange {
        package let type: String
        package let id: RecordID
        package let operation: ParkedChange.Operation
        /// The attributes that the edit set; nil for a delete.
        package let attributes: Attributes?
    }

    /// Returns the changes of a queued set; none if it is not queued any more.
    package func changes(of identifier: String) throws -> [QueuedChange] {
        let outbox = Outbox(store: applying)
        guard let set = try outbox.queued().first(where: { $0.identifier == identifier }) else {
            return []
        }
        return try outbox.changes(of: set.sequence).map { change in
            let operation: ParkedChange.Operation =
                switch change.operation {
                case .create: .create
                case .update: .update
                case .delete: .delete
                }
            return QueuedChange(
                type: try applying.typeName(ofNumber: change.number), id: change.id,
                operation: operation,
                attributes: try change.after.map { try SyncCoder.decodeAttributes($0) })
        }
    }

    /// Returns the number of statements that the connection for remote change has compiled so far,
    /// and the steps of SQLite's machine on it since the last call.
    package func takeApplyingCounts() -> (prepared: Int, steps: Int) {
        (
            applying.connection.preparedStatements,
            applying.connection.takeVirtualMachineSteps()
        )
    }

    /// Returns the identifiers of all queued sets.
    package func queuedIdentifiers() throws -> [String] {
        try Outbox(store: applying).queued().map(\.identifier)
    }

    /// Returns every record as the server confirmed it, by type: the tables, with base images in
    /// place of records that have unconfirmed edits. Attributes that are null or computed are left
    /// out.
    package func confirmedState() throws -> [String: [RecordID: [String: Value]]] {
        var state: [String: [RecordID: [String: Value]]] = [:]
        for (index, type) in applying.schema.types.enumerated() {
            var records: [RecordID: [String: Value]] = [:]
            try applying.tables[index].forEach { id, attributes in
                records[id] = Self.dictionary(attributes, type)
            }
            let bases = try applying.connection.statement(
                "SELECT id, image FROM martlet_base WHERE type = ?")
            bases.bind(1, integer: applying.numbers[index])
            defer { bases.reset() }
            while try bases.step() {
                let id = try bases.recordID(0)
                records[id] =
                    bases.isNull(1)
                    ? nil
                    : Self.dictionary(
                        try SyncCoder.decodeAttributes(bases.blob(1)), type)
            }
            if !records.isEmpty { state[type.name] = records }
        }
        return state
    }

    /// Returns the tables as the app sees them, by type. Attributes that are null or computed are
    /// left out.
    package func shownState() throws -> [String: [RecordID: [String: Value]]] {
        var state: [String: [RecordID: [String: Value]]] = [:]
        for (index, type) in applying.schema.types.enumerated() {
            try applying.tables[index].forEach { id, attributes in
                state[type.name, default: [:]][id] = Self.dictionary(attributes, type)
            }
        }
        return state
    }

    /// Returns whether the tables have a type and an attribute of it. An empty name asks for the
    /// type alone.
    package func knows(_ type: String, _ attribute: String) -> Bool {
        guard let type = applying.schema[type] else { return false }
        return attribute.isEmpty || type[attribute: attribute] != nil
    }

    private static func dictionary(
        _ attributes: Attributes, _ type: EntityType
    ) -> [String: Value] {
        var record: [String: Value] = [:]
        for (name, value) in zip(attributes.names, attributes.values)
        where value != .null && type[attribute: name]?.isGenerated != true {
            record[name] = value
        }
        return record
    }

    /// Returns a sentence about a contradiction in the stored data; nil if there is none.
    package func contradiction() throws -> String? {
        if let text = try applying.connection.text("PRAGMA quick_check"), text != "ok" {
            return "the file is damaged: \(text)"
        }
        if try applying.connection.integer("SELECT capture FROM martlet_control") != 1 {
            return "capture is off outside a transaction"
        }
        let orphans = try applying.connection.integer(
            """
            SELECT count(*) FROM martlet_changes
            WHERE sequence NOT IN (SELECT sequence FROM martlet_outbox)
            """)
        if orphans != 0 { return "\(orphans ?? 0) changes belong to no queued set" }
        let unbased = try applying.connection.integer(
            """
            SELECT count(*) FROM martlet_base AS b WHERE NOT EXISTS (
                SELECT 1 FROM martlet_changes AS c WHERE c.type = b.type AND c.id = b.id)
            AND NOT EXISTS (
                SELECT 1 FROM martlet_withheld AS w WHERE w.type = b.type AND w.id = b.id)
            """)
        if unbased != 0 { return "\(unbased ?? 0) base images belong to no queued edit" }
        return nil
    }
}
