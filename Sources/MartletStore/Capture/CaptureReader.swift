internal import MartletCore
package import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// What one transaction did to one record, all its writes taken together.
package struct RecordChange: Sendable {
    /// What the transaction did to the record; the raw value is stored.
    package enum Operation: Int64, Sendable {
        case create = 1
        case update = 2
        case delete = 3
    }

    /// The type's position in the schema.
    package let type: Int
    package let id: RecordID
    package let operation: Operation
    /// The whole record before; nil for a create.
    package let before: Attributes?
    /// Create: all attributes that are not null, and nulls where there is a default. Update: those that changed. Delete: none.
    package let after: Attributes

    package init(
        type: Int, id: RecordID, operation: Operation, before: Attributes?, after: Attributes
    ) {
        self.type = type
        self.id = id
        self.operation = operation
        self.before = before
        self.after = after
    }
}

extension LocalStore {
    /// Whether any write is noted and not yet taken.
    package var hasCapture: Bool {
        get throws {
            try connection.integer("SELECT 1 FROM martlet_capture LIMIT 1") != nil
        }
    }

    /// Takes what the triggers have noted and empties the note: the net change of each record, in
    /// the order in which the records were first touched. Runs in the caller's transaction.
    ///
    /// - Complexity: O(*n*) in the rows noted, with one look-up for each record touched.
    package func takeCapture() throws -> [RecordChange] {
        var touched: [Touched] = []
        var positions: [Key: Int] = [:]
        let rows = try connection.statement("SELECT * FROM martlet_capture ORDER BY n")
        defer { rows.reset() }
        while try rows.step() {
            let number = rows.integer(1)
            guard let type = index(ofNumber: number) else { continue }
            let key = Key(type: type, id: try rows.recordID(3))
            let operation = rows.integer(2)
            let position: Int
            if let known = positions[key] {
                position = known
            } else {
                position = touched.count
                positions[key] = position
                touched.append(
                    Touched(key: key, existed: operation != CaptureTriggers.Operation.inserted))
            }
            guard operation != CaptureTriggers.Operation.inserted, touched[position].existed else {
                continue
            }
            try collect(rows, type: type, into: &touched[position])
        }
        guard !touched.isEmpty else { return [] }
        try connection.run("DELETE FROM martlet_capture")
        return try touched.compactMap { try net($0) }
    }

    /// Takes the old values of one noted row, where none are known yet: the oldest count.
    private func collect(
        _ row: Statement, type: Int, into touched: inout Touched
    ) throws {
        guard touched.old.isEmpty else { return }
        let attributes = schema.types[type].attributes
        touched.old = [Value?](repeating: nil, count: attributes.count)
        var column: Int32 = 4
        for index in attributes.indices where !attributes[index].isGenerated {
            touched.old[index] = try row.value(column, kind: attributes[index].kind)
            column += 1
        }
    }

    private func net(_ touched: Touched) throws -> RecordChange? {
        let type = touched.key.type
        let id = touched.key.id
        let now = try tables[type].read(id)
        guard touched.existed else {
            guard let now else { return nil }
            return RecordChange(
                type: type, id: id, operation: .create, before: nil,
                after: created(now, type: type))
        }
        return try changed(touched, now: now)
    }

    private func changed(_ touched: Touched, now: Attributes?) throws -> RecordChange? {
        let type = touched.key.type
        let attributes = schema.types[type].attributes
        var names: [String] = []
        var oldest: [Value] = []
        var changedNames: [String] = []
        var changedValues: [Value] = []
        for index in attributes.indices where !attributes[index].isGenerated {
            let name = attributes[index].name
            // Rows are read in the table's order, so the value mostly stands at the same place.
            let current = now.flatMap { $0.names[index] == name ? $0.values[index] : $0[name] }
            let noted = touched.old.isEmpty ? nil : touched.old[index]
            guard let old = noted ?? current else {
                throw StoreError(
                    .inconsistent, "A deleted record of \(schema.types[type].name) left no image.")
            }
            names.append(name)
            oldest.append(old)
            if let current, current != old {
                changedNames.append(name)
                changedValues.append(current)
            }
        }
        if now != nil, changedNames.isEmpty { return nil }
        return RecordChange(
            type: type, id: touched.key.id, operation: now == nil ? .delete : .update,
            before: Attributes(names: names, values: oldest),
            after: Attributes(names: changedNames, values: changedValues))
    }

    /// What a new record consists of. A null is left out, but not where the server would put the
    /// column's default in its place.
    private func created(_ attributes: Attributes, type: Int) -> Attributes {
        let described = schema.types[type]
        var names: [String] = []
        var values: [Value] = []
        for (name, value) in zip(attributes.names, attributes.values) {
            guard let attribute = described[attribute: name], !attribute.isGenerated,
                value != .null || attribute.hasDefault
            else { continue }
            names.append(name)
            values.append(value)
        }
        return names.count == attributes.count
            ? attributes : Attributes(names: names, values: values)
    }

    /// A record's attributes without the ones the database computes.
    package func stored(_ attributes: Attributes, type: Int) -> Attributes {
        let described = schema.types[type].attributes
        guard described.contains(where: \.isGenerated) else { return attributes }
        var result = Attributes()
        for (name, value) in zip(attributes.names, attributes.values)
        where schema.types[type][attribute: name]?.isGenerated != true {
            result[name] = value
        }
        return result
    }
}

/// A record: its type's position and its id.
struct Key: Hashable {
    let type: Int
    let id: RecordID
}

private struct Touched {
    let key: Key
    let existed: Bool
    /// By attribute position: the oldest noted value; empty when nothing was noted.
    var old: [Value?] = []

    init(key: Key, existed: Bool) {
        self.key = key
        self.existed = existed
    }
}

extension Attributes {
    /// The attributes that are not null. Shares the list of names where there are none.
    package func withoutNulls() -> Attributes {
        guard values.contains(.null) else { return self }
        var names: [String] = []
        var values: [Value] = []
        for (name, value) in zip(self.names, self.values) where value != .null {
            names.append(name)
            values.append(value)
        }
        return Attributes(names: names, values: values)
    }
}
