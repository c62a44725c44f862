import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Moves unique values out of the way, so that a set may swap them between records, or delete a record and
/// create another with the same value.
///
/// SQLite checks UNIQUE after each row, so the order of the statements would decide whether such a
/// set passes. Parked values do not meet others before the end.
///
/// Of each list of unique columns, one column is parked: as NULL if the column allows it, or else
/// as a value that no record has. If a unique index is partial or has computed columns, the rows
/// are taken out of the table until the set's own change puts them back. If other rows refer to the
/// table, or the user's triggers watch it, that would start their actions. Then all columns of the
/// records are parked, as values that no record has. An expression that makes equal values of these
/// still refuses the set.
///
/// Every parked value is written again together with the set's own change of the record, or is
/// deleted with its record.
struct ValueParking {
    let session: EmbeddedSession
    let plan: SetPlan
    let facts: SetFacts

    /// The values, rows and keys that are moved out of the way until the set itself changes their records.
    struct Parked {
        /// The values that the set does not write itself.
        var values: [RecordAddress: Attributes] = [:]
        /// The rows that were taken out of their table.
        var rows: [RecordAddress: Attributes] = [:]
        /// The keys that rows have until they are deleted.
        var keys: [RecordAddress: RecordID] = [:]
    }

    /// Parks the values of the records that the set updates or deletes, and keys that conflict with
    /// new ones.
    func park() throws(SQLiteError) -> Parked {
        var number: Int64 = 0
        var result = Parked()
        var computed: Set<Int> = []
        var loose: Set<Int> = []
        for type in Set((plan.updates + plan.deletes).map(\.type))
        where try hasComputedIndex(session.schema.types[type].name) {
            computed.insert(type)
            if session.capture == nil, try !isReferredTo(session.schema.types[type].name) {
                loose.insert(type)
            }
        }
        for (changes, isDelete) in [(plan.updates, false), (plan.deletes, true)] {
            for change in changes {
                let type = session.schema.types[change.type]
                let address = facts.permanentAddress(of: change.address)
                if loose.contains(change.type) {
                    let table = session.tables[change.type]
                    if !isDelete { result.rows[address] = try table.read(address.id) }
                    _ = try table.delete(address.id)
                } else if computed.contains(change.type) {
                    let kept = try parkAll(change, in: type, &number)
                    if !isDelete { result.values[address] = kept }
                } else {
                    try parkUnique(change, in: type, isDelete: isDelete, &number)
                }
            }
        }
        result.keys = try parkKeys()
        return result
    }

    /// Parks one column of each list of unique columns.
    private func parkUnique(
        _ change: SetPlan.Change, in type: EntityType, isDelete: Bool, _ number: inout Int64
    ) throws(SQLiteError) {
        for unique in type.uniques {
            let written = unique.filter { isDelete || change.attributes[$0] != nil }
            let candidates = columns(written, of: type)
            let chosen = candidates.first { !$0.isRequired } ?? candidates.first
            guard let chosen else { continue }
            number += 1
            let value = chosen.isRequired ? parked(chosen.kind, number) : .null
            try write(Attributes(names: [chosen.name], values: [value]), to: change)
        }
    }

    /// Parks all columns of a record.
    ///
    /// - Returns: The former values of those columns that the change does not write.
    private func parkAll(
        _ change: SetPlan.Change, in type: EntityType, _ number: inout Int64
    ) throws(SQLiteError) -> Attributes {
        let all = columns(type.attributes.map(\.name), of: type)
        let kept = all.map(\.name).filter { change.attributes[$0] == nil }
        let id = facts.permanentAddress(of: change.address).id
        let table = session.tables[change.type]
        let before = kept.isEmpty ? nil : try table.read(id, kept)
        var values: [Value] = []
        for column in all {
            number += 1
            values.append(parked(column.kind, number))
        }
        try write(Attributes(names: all.map(\.name), values: values), to: change)
        return before ?? Attributes()
    }

    /// Returns whether a table has references to this one.
    private func isReferredTo(_ table: String) throws(SQLiteError) -> Bool {
        let find = try session.connection.statement(
            """
            SELECT 1 FROM main.sqlite_schema AS item, pragma_foreign_key_list(item.name) AS part
            WHERE item.type = 'table' AND part."table" = ?1 COLLATE NOCASE
            """)
        find.bind(1, text: table)
        defer { find.reset() }
        return try find.step()
    }

    private func columns(_ names: [String], of type: EntityType) -> [Attribute] {
        names.compactMap { type[attribute: $0] }.filter { !$0.isGenerated }
    }

    /// Returns whether a table has a unique index that is partial, or of an expression or a generated column.
    private func hasComputedIndex(_ table: String) throws(SQLiteError) -> Bool {
        let find = try session.connection.statement(
            """
            SELECT 1 FROM pragma_index_list(?1, 'main') AS list, pragma_index_xinfo(list.name) AS part
            WHERE list."unique" AND part.key AND (list.partial OR part.cid = -2 OR part.name IN (
                SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden IN (2, 3)))
            """)
        find.bind(1, text: table)
        defer { find.reset() }
        return try find.step()
    }

    /// Moves text keys of records that the set deletes out of the way, if their collation makes them equal
    /// to keys of records that the set creates.
    ///
    /// The rows are not deleted at once, because ON DELETE actions would find references that the
    /// set has moved to the new record. References with ON UPDATE CASCADE follow the key, and meet
    /// the ON DELETE action as they would have. If the tables have other ON UPDATE actions or the
    /// user's triggers, these would see the parked key. Then nothing is moved, and the set is
    /// refused.
    ///
    /// - Returns: The keys that the rows have until they are deleted.
    private func parkKeys() throws(SQLiteError) -> [RecordAddress: RecordID] {
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
                let spare = RecordID.text("\u{1}martlet parked key \(parked.count)")
                if try session.tables[create.type].changeKey(from: id, to: spare) {
                    parked[address] = spare
                }
            }
        }
        return parked
    }

    /// Returns whether a change of a table's key takes references away from it.
    private func hasUpdateActions(_ table: String) throws(SQLiteError) -> Bool {
        let find = try session.connection.statement(
            """
            SELECT 1 FROM main.sqlite_schema AS item, pragma_foreign_key_list(item.name) AS part
            WHERE item.type = 'table' AND part."table" = ?1 COLLATE NOCASE
                AND part.on_update IN ('SET NULL', 'SET DEFAULT')
            """)
        find.bind(1, text: table)
        defer { find.reset() }
        return try find.step()
    }

    private func write(
        _ attributes: Attributes, to change: SetPlan.Change
    ) throws(SQLiteError) {
        let table = session.tables[change.type]
        let id = facts.permanentAddress(of: change.address).id
        do {
            _ = try table.update(id, attributes)
        } catch {
            guard error.isCheckViolation else { throw error }
            // The value is gone before the set ends, and the value that replaces it is checked.
            try session.connection.execute("PRAGMA ignore_check_constraints = ON")
            let result = Result { () throws(SQLiteError) in try table.update(id, attributes) }
            try session.connection.execute("PRAGMA ignore_check_constraints = OFF")
            _ = try result.get()
        }
    }

    private func parked(_ kind: AttributeKind, _ number: Int64) -> Value {
        switch kind {
        case .integer, .boolean: .integer(Int64.min / 2 + number)
        // The values also differ in the fifteen digits that an expression turns into text.
        case .real: .real(-1e300 - Double(number) * 1e290)
        case .text, .any, .numeric: .text("\u{1}martlet parked \(number)")
        case .blob: .text(Base64.encode(Array("\u{1}martlet parked \(number)".utf8)))
        }
    }
}
