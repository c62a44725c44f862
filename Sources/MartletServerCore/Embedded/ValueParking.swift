import MartletCore
import MartletProtocol
import SQLiteKit
import SQLiteRecords

/// Moves unique values out of the way, so that a set may swap them between records, or delete a
/// record and create another with the same value.
///
/// SQLite checks UNIQUE after each row, so the order of the statements decides whether such a set
/// passes; parked, no value meets another before the end. Of each list of unique columns one is
/// parked: as NULL where the column allows it, else as a value no one has. If an index is of what is
/// computed from columns, every column is parked that the set writes or that goes with its record, as a
/// value no one has: an expression may make something of NULL. Every parked value is written again by
/// the set, or goes with its record.
struct ValueParking {
    let session: EmbeddedSession
    let plan: SetPlan
    let facts: SetFacts

    func park() throws(SQLiteError) {
        var number: Int64 = 0
        var computed: Set<Int> = []
        for type in Set((plan.updates + plan.deletes).map(\.type))
        where try hasComputedIndex(session.schema.types[type].name) {
            computed.insert(type)
        }
        for (changes, isWhole) in [(plan.updates, false), (plan.deletes, true)] {
            for change in changes {
                let type = session.schema.types[change.type]
                let isComputed = computed.contains(change.type)
                for unique in isComputed ? type.attributes.map({ [$0.name] }) : type.uniques {
                    let parked = unique.filter { isWhole || change.attributes[$0] != nil }
                    try park(change, parked, in: type, asNull: !isComputed, &number)
                }
            }
        }
    }

    /// Returns whether a table has a unique index of an expression or of a generated column.
    private func hasComputedIndex(_ table: String) throws(SQLiteError) -> Bool {
        let find = try session.connection.statement(
            """
            SELECT 1 FROM pragma_index_list(?1, 'main') AS list, pragma_index_xinfo(list.name) AS part
            WHERE list."unique" AND part.key AND (part.cid = -2 OR part.name IN (
                SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden IN (2, 3)))
            """)
        find.bind(1, text: table)
        defer { find.reset() }
        return try find.step()
    }

    /// Moves text keys of records that the set deletes out of the way of keys of records that it creates, if the key's
    /// collation takes the two for equal.
    ///
    /// The rows are not deleted at once: ON DELETE actions would find references that the set has moved to the new
    /// record. If the tables have ON UPDATE actions or the user's triggers, these would see the key that is parked, and
    /// nothing is moved: the set is refused.
    /// - Returns: The keys that the rows have until they are deleted.
    func parkKeys() throws(SQLiteError) -> [RecordAddress: RecordID] {
        let deleted = Set(plan.deletes.map(\.address))
        var parked: [RecordAddress: RecordID] = [:]
        guard !deleted.isEmpty, session.capture == nil else { return parked }
        for create in plan.creates {
            let type = session.schema.types[create.type]
            guard type.keyKind == .text else { continue }
            let (table, key) = (SQLName.quoted(type.name), SQLName.quoted(type.key))
            let find = try session.connection.statement(
                "SELECT \(key) FROM \(table) WHERE \(key) = ?1 AND \(key) <> ?1 COLLATE BINARY")
            find.bind(1, create.id)
            for id in try find.rows({ (row) throws(SQLiteError) in try row.recordID(0) }) {
                let address = RecordAddress(create.type, id)
                guard deleted.contains(address), try !hasUpdateActions(type.name) else { continue }
                let place = RecordID.text("\u{1}martlet parked key \(parked.count)")
                if try session.tables[create.type].changeKey(from: id, to: place) {
                    parked[address] = place
                }
            }
        }
        return parked
    }

    /// Returns whether a change of a table's key changes rows that refer to it.
    private func hasUpdateActions(_ table: String) throws(SQLiteError) -> Bool {
        let find = try session.connection.statement(
            """
            SELECT 1 FROM main.sqlite_schema AS item, pragma_foreign_key_list(item.name) AS part
            WHERE item.type = 'table' AND part."table" = ?1 COLLATE NOCASE
                AND part.on_update NOT IN ('NO ACTION', 'RESTRICT')
            """)
        find.bind(1, text: table)
        defer { find.reset() }
        return try find.step()
    }

    private func park(
        _ change: SetPlan.Change, _ columns: [String], in type: EntityType, asNull: Bool,
        _ number: inout Int64
    ) throws(SQLiteError) {
        let candidates = columns.compactMap { type[attribute: $0] }.filter { !$0.isGenerated }
        let chosen = candidates.first { !$0.isRequired } ?? candidates.first
        guard let chosen else { return }
        number += 1
        let value: Value = asNull && !chosen.isRequired ? .null : parked(chosen.kind, number)
        let table = session.tables[change.type]
        let id = facts.permanentAddress(of: change.address).id
        let attributes = Attributes(names: [chosen.name], values: [value])
        do {
            _ = try table.update(id, attributes)
        } catch {
            guard error.isCheckViolation else { throw error }
            // The value is gone before the set ends, and what replaces it is checked.
            try session.connection.execute("PRAGMA ignore_check_constraints = ON")
            let result = Result { () throws(SQLiteError) in try table.update(id, attributes) }
            try session.connection.execute("PRAGMA ignore_check_constraints = OFF")
            _ = try result.get()
        }
    }

    private func parked(_ kind: AttributeKind, _ number: Int64) -> Value {
        switch kind {
        case .integer, .boolean: .integer(Int64.min / 2 + number)
        // They differ in the fifteen digits that an expression makes text of, too.
        case .real: .real(-1e300 - Double(number) * 1e290)
        case .text, .any, .numeric: .text("\u{1}martlet parked \(number)")
        case .blob: .text(Base64.encode(Array("\u{1}martlet parked \(number)".utf8)))
        }
    }
}
