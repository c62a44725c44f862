internal import MartletModel

/// The access of a draft to its table.
struct DraftTable<Element: ReadableRecord & Sendable>: Sendable {
    let name: String
    let keyColumn: String
    let description: TableDescription
    /// Returns the record with a key; nil if there is none.
    let find: @Sendable (SQLValue, ReadContext) throws -> Element?
    let insert: @Sendable (RecordValues, WriteContext) throws -> SQLValue
    let update: @Sendable (RecordValues, WriteContext) throws -> Bool

    init(_ table: some Table<Element>, in context: ReadContext) throws {
        let statements = try table.statements(context)
        guard let key = statements.description.key.first, statements.description.key.count == 1
        else {
            throw StoreError(
                .misuse,
                "The key of “\(table.tableName)” has \(statements.description.key.count) columns;"
                    + " a draft is of a record with one.")
        }
        name = table.tableName
        keyColumn = key
        description = statements.description
        find = { try table.find($0, in: $1) }
        insert = { SQLValue(try table.insert($0, in: $1)) }
        update = { try table.update($0, in: $1) }
    }

    /// Returns the record with a key, as a draft sees it; nil if there is none.
    func read(_ key: SQLValue, in context: ReadContext) throws -> DraftRecord<Element>? {
        guard let element = try find(key, context) else { return nil }
        let statements = context.session.knownStatements(of: name)
        let current = try statements.map { try context.resolve(key, $0) }
        return DraftRecord(key: current ?? key, element: element, values: try values(of: element))
    }

    /// Returns the values that a record expresses for the table, without the key.
    func values(of element: Element) throws -> RecordValues {
        var values = try element.dictionaryRepresentation(
            columns: TableColumns(description), table: name)
        values[keyColumn] = nil
        return values
    }
}

extension ReadContext {
    /// Returns permanent ids for the references that still hold temporary ones.
    /// - Returns: Only the values that change.
    func permanentReferences(in values: RecordValues, of table: String) throws -> RecordValues {
        var permanent = RecordValues()
        guard let store = session.store, let type = store.schema.index(of: table) else {
            return permanent
        }
        for reference in store.schema.types[type].references {
            guard case .integer(let number)? = values[reference.attribute], number < 0,
                let target = store.schema.index(of: reference.target)
            else { continue }
            let id = try store.resolve(.integer(number), type: target)
            if id != .integer(number) { permanent[reference.attribute] = SQLValue(id) }
        }
        return permanent
    }
}
