internal import MartletCore
public import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// What a local save can do. Valid inside the closure it was given to.
public final class WriteContext {
    private let store: LocalStore
    private let randomBits: () -> UInt64
    /// The temporary id the next new record gets: negative, going down.
    public private(set) var nextTemporaryID: Int64

    public init(
        store: LocalStore, nextTemporaryID: Int64, randomBits: @escaping () -> UInt64
    ) throws {
        self.store = store
        self.nextTemporaryID = nextTemporaryID
        self.randomBits = randomBits
    }

    /// Inserts a record.
    /// - Parameters:
    ///   - type: The entity type's name.
    ///   - attributes: Values by name; a column left out takes its default.
    ///   - id: The key, for types with text keys; nil makes a random one. Integer keys are always
    ///     made here.
    /// - Returns: The record's id: temporary for integer keys, until the server has assigned one.
    /// - Throws: `StoreError` for unknown names and values that do not fit, `SQLiteError` for
    ///   violated constraints.
    @discardableResult
    public func insert(
        _ type: String, _ attributes: KeyValuePairs<String, Value>, id: String? = nil
    ) throws -> RecordID {
        try insert(type, checked(type, attributes), id: id)
    }

    /// Inserts a record whose attributes are at hand as a list.
    @discardableResult
    public func insert(
        _ type: String, _ attributes: Attributes, id: String? = nil
    ) throws -> RecordID {
        let index = try store.index(of: type)
        let record: RecordID
        switch store.schema.types[index].keyKind {
        case .integer:
            guard id == nil else {
                throw StoreError(
                    .value, "The key of \(type) is an integer and is made by Martlet; leave it out."
                )
            }
            record = .integer(nextTemporaryID)
            nextTemporaryID -= 1
        case .text:
            record = .text(id ?? newTextKey())
        }
        try store.tables[index].insert(record, attributes, absentMeansNull: false)
        return record
    }

    /// Changes attributes of a record.
    /// - Returns: Whether there is such a record. A temporary id finds the record for ever.
    @discardableResult
    public func update(
        _ type: String, _ id: RecordID, _ attributes: KeyValuePairs<String, Value>
    ) throws -> Bool {
        try update(type, id, checked(type, attributes))
    }

    /// Changes attributes of a record that are at hand as a list.
    @discardableResult
    public func update(_ type: String, _ id: RecordID, _ attributes: Attributes) throws -> Bool {
        let index = try store.index(of: type)
        return try store.tables[index].update(try store.resolve(id, type: index), attributes)
    }

    /// Deletes a record, and what its references' ON DELETE actions say.
    /// - Returns: Whether there was such a record.
    @discardableResult
    public func delete(_ type: String, _ id: RecordID) throws -> Bool {
        let index = try store.index(of: type)
        return try store.tables[index].delete(try store.resolve(id, type: index))
    }

    /// The id a record has now: the permanent one as soon as it is known.
    public func currentID(_ type: String, _ id: RecordID) throws -> RecordID {
        try store.resolve(id, type: try store.index(of: type))
    }

    /// A record's attributes; nil where there is none.
    public func record(_ type: String, _ id: RecordID) throws -> Attributes? {
        try store.record(type, id)
    }

    /// Runs one SQL statement with bound values, and returns its rows.
    @discardableResult
    public func rows(_ sql: String, _ arguments: [Value] = []) throws -> [Attributes] {
        try store.rows(sql, arguments)
    }

    private func checked(
        _ type: String, _ pairs: KeyValuePairs<String, Value>
    ) throws -> Attributes {
        let described = store.schema.types[try store.index(of: type)]
        var attributes = Attributes()
        for (name, value) in pairs {
            guard let attribute = described[attribute: name], !attribute.isGenerated else {
                throw StoreError(
                    .unknown, "\(type) has no attribute \(name) that can be written.")
            }
            if let mismatch = RecordTable.mismatch(value, attribute) {
                throw StoreError(.value, "\(type).\(name): \(mismatch).")
            }
            attributes[name] = value
        }
        return attributes
    }

    /// A random UUID, version 4 (RFC 9562).
    private func newTextKey() -> String {
        let high = randomBits() & 0xffff_ffff_ffff_0fff | 0x4000
        let low = randomBits() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
        let digits = [high, low].map { bits in
            let text = String(bits, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var result = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { result += "-" }
            result.append(digit)
        }
        return result
    }
}

@available(*, unavailable)
extension WriteContext: Sendable {}

// MARK: - Reading

extension LocalStore {
    /// The permanent id of a temporary one, where it is known; otherwise the id as it is.
    public func resolve(_ id: RecordID, type: Int) throws -> RecordID {
        guard case .integer(let number) = id, number < 0 else { return id }
        let find = try connection.statement(
            "SELECT id FROM martlet_ids WHERE type = ? AND temporary = ?")
        find.bind(1, integer: numbers[type])
        find.bind(2, integer: number)
        defer { find.reset() }
        return try find.step() ? .integer(find.integer(0)) : id
    }

    /// A record's attributes; nil where there is none. A temporary id finds the record for ever.
    public func record(_ type: String, _ id: RecordID) throws -> Attributes? {
        let index = try index(of: type)
        return try tables[index].read(try resolve(id, type: index))
    }

    /// Runs one SQL statement with bound values, and returns its rows. Blobs come as base64.
    public func rows(_ sql: String, _ arguments: [Value] = []) throws -> [Attributes] {
        let statement = try connection.statement(sql)
        guard Int(statement.parameterCount) == arguments.count else {
            throw StoreError(
                .value,
                "The statement has \(statement.parameterCount) parameters and got"
                    + " \(arguments.count) values.")
        }
        for (index, argument) in arguments.enumerated() {
            statement.bind(Int32(index + 1), argument, kind: .any)
        }
        defer { statement.reset() }
        let names = (0..<statement.columnCount).map { statement.name($0) }
        var rows: [Attributes] = []
        while try statement.step() {
            let values = try (0..<statement.columnCount).map { column in
                try statement.value(
                    column, kind: statement.storage(column) == .blob ? .blob : .any)
            }
            rows.append(Attributes(names: names, values: values))
        }
        return rows
    }
}
