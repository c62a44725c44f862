internal import MartletModel
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Finds types and attributes that stored images name and that the schema may no longer have.
extension LocalStore {
    /// Returns the number of a type in Martlet's tables; nil for a type that this file has never
    /// had.
    func number(ofType name: String) throws -> Int64? {
        if let index = schema.index(of: name) { return numbers[index] }
        let find = try connection.statement("SELECT number FROM martlet_types WHERE name = ?")
        find.bind(1, text: name)
        defer { find.reset() }
        return try find.step() ? find.integer(0) : nil
    }

    /// Returns the name of a type, also of one that the schema no longer has.
    func typeName(ofNumber number: Int64) throws -> String {
        if let index = index(ofNumber: number) { return schema.types[index].name }
        let find = try connection.statement("SELECT name FROM martlet_types WHERE number = ?")
        find.bind(1, integer: number)
        defer { find.reset() }
        guard try find.step() else {
            throw StoreError(
                .inconsistent, "A stored change is of the type \(number), which has no name.")
        }
        return find.text(0)
    }

    /// Returns the permanent id of a temporary one; nil if it has none yet, and for permanent ids.
    func permanentID(of key: RecordKey) throws -> Int64? {
        guard case .integer(let number) = key.id, number < 0 else { return nil }
        let find = try connection.statement(
            "SELECT id FROM martlet_ids WHERE type = ? AND temporary = ?")
        find.bind(1, integer: key.type)
        find.bind(2, integer: number)
        defer { find.reset() }
        return try find.step() ? find.integer(0) : nil
    }

    /// Returns those of the attributes that the type has; the others are not for its table.
    func known(_ attributes: Attributes, type: Int) -> Attributes {
        let described = schema.types[type]
        if attributes.names.allSatisfy({ described[attribute: $0] != nil }) { return attributes }
        return attributes.filtered { described[attribute: $0] != nil }
    }

    /// Returns those of the attributes that the type does not have.
    func unknown(_ attributes: Attributes, type: Int) -> Attributes {
        let described = schema.types[type]
        return attributes.filtered { described[attribute: $0] == nil }
    }
}

extension Attributes {
    /// Returns the attributes whose names meet a condition.
    fileprivate func filtered(_ condition: (String) -> Bool) -> Attributes {
        var names: [String] = []
        var values: [Value] = []
        for (name, value) in zip(self.names, self.values) where condition(name) {
            names.append(name)
            values.append(value)
        }
        return Attributes(names: names, values: values)
    }
}
