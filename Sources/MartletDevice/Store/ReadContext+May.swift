public import MartletModel
internal import MartletRules
public import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

extension ReadContext {
    /// Returns whether the rules let the user make a change, as far as the device knows them.
    ///
    /// An observation that asks this follows the records on which the answer depends. Without rules
    /// everything is allowed. The server decides in the end, by its own state.
    ///
    /// ```swift
    /// let mayRename = try await client.may(.update, "players", .integer(7), ["name"])
    /// let mayAdd = try await client.may(.insert, "players", values: ["team": 7])
    /// ```
    /// - Parameters:
    ///   - operation: The change.
    ///   - type: The table.
    ///   - id: The record; nil for a new one.
    ///   - columns: The columns that are to be written.
    ///   - values: Values that are to be written, if they are known. For a new record the other columns
    ///     count as NULL. Without values the answer is true if some new record may be allowed, or some
    ///     change of the columns.
    /// - Returns: False also if there is no such record.
    /// - Throws: `StoreError` `.unknown` for a table or column that does not exist; `.misuse` if the
    ///   database is not synchronised.
    public func may(
        _ operation: RowWrite.Operation, _ type: String, _ id: RecordID? = nil,
        _ columns: [String] = [], values: RecordValues = [:]
    ) throws -> Bool {
        // It checks the context as well.
        let current = try currentID(type, id ?? .integer(0))
        guard let store = session.store as? LocalStore else { return true }
        let position = try store.index(of: type)
        let described = store.schema.types[position]
        let written = Set(columns).union(values.names).subtracting([described.key])
        for column in written where described[attribute: column] == nil {
            throw StoreError(.unknown, "“\(type)” has no column “\(column)”; name one of its own.")
        }
        let now = try store.now() ?? store.integerState("lastExchange") ?? 0
        guard let rights = try SaveRights(store, now: now) else { return true }
        noteReading(
            of: rights.program.typesJudged(with: position).map { store.schema.types[$0].name })
        let judge = rights.evaluator(rights.lookups())
        if operation == .insert {
            var known = Attributes()
            for name in written {
                if let value = values[name] { known[name] = Value(value) }
            }
            let given =
                judge.columnsToInsert(known, of: position)
                + written.filter { values[$0] == nil }.sorted()
            guard !values.isEmpty else {
                return judge.mayInsertSome(of: position, columns: given)
            }
            let row = [.null] + described.attributes.map { Value(values[$0.name] ?? .null) }
            return try judge.refusalToInsert(row, columns: given, of: position) == nil
        }
        guard id != nil, let old = try store.tables[position].read(current) else { return false }
        let row = [current.value] + old.values
        guard try judge.maySelect(row, of: position) else { return false }
        if operation == .delete { return try judge.refusalToDelete(row, of: position) == nil }
        guard try judge.refusalToUpdate(row, columns: written.sorted(), of: position) == nil else {
            return false
        }
        guard !values.isEmpty else { return true }
        let new = zip(described.attributes, old.values).map { attribute, value in
            values[attribute.name].map { Value($0) } ?? value
        }
        return try judge.refusalToLeave([current.value] + new, of: position) == nil
    }
}

extension Value {
    /// The value that a column has once this is written to it.
    fileprivate init(_ value: SQLValue) {
        switch value {
        case .null: self = .null
        case .integer(let number): self = .integer(number)
        case .real(let number): self = .real(number)
        case .text(let text): self = .text(text)
        case .blob(let bytes): self = .text(Base64.encode(bytes))
        }
    }
}
