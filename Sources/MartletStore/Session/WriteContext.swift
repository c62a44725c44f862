public import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// A save: it reads as a `ReadContext` does, and writes. It is valid only inside the closure that
/// receives it. The whole closure is one transaction.
///
/// ```swift
/// try await client.write { context in
///     let id = try context.insert("teams", ["name": .text("Kestrels")])
///     try context.update("teams", id, ["city": .text("Leeds")])
/// }
/// ```
public final class WriteContext: ReadContext {
    private let randomBits: () -> UInt64
    /// The temporary id that the next new record gets: a negative number that decreases.
    public private(set) var nextTemporaryID: Int64
    private var savepoints = 0
    /// The number of hooked writes that are nested in each other now.
    var hookDepth = 0

    /// The first temporary id of a file. Later records get lower ones.
    package static let firstTemporaryID: Int64 = -2

    package init(
        session: Session, nextTemporaryID: Int64 = WriteContext.firstTemporaryID,
        randomBits: @escaping () -> UInt64
    ) {
        self.nextTemporaryID = nextTemporaryID
        self.randomBits = randomBits
        super.init(session: session)
    }

    override func checkValid() throws {
        try super.checkValid()
        // Without a transaction, each statement would be its own save.
        guard session.connection.isInTransaction else {
            throw StoreError(
                .misuse,
                "An earlier failure has taken the whole save back, so nothing more can be written"
                    + " in it. Let that error leave the closure.")
        }
    }

    /// The prefixes of the tables that imports, commands and demonstrations keep next to the
    /// records through this context.
    private static let toolPrefixes = ["import_", "command", "demo_"]
        .map { ReservedWords.prefix + $0 }

    override func check(_ access: TableAccess) throws {
        try Self.refuseTransactions(access)
        try Self.refuseSettings(access, isWriting: true)
        try refuseShadows(access)
        guard session.store != nil else { return }
        let isTools: (String) -> Bool = { name in
            Self.toolPrefixes.contains { SQLName.folded(name).hasPrefix($0) }
        }
        if let table = access.changedTables.first(where: { !isTools($0) }) {
            throw StoreError(
                .misuse,
                "A closure cannot change the table “\(table)”, nor its indexes, because earlier edits"
                    + " could no longer be read. Change them in the schema that opens the file, or in"
                    + " a migration.")
        }
        var written = access.writes.union(access.changedObjects)
        // Martlet's triggers write to Martlet's tables.
        for (trigger, tables) in access.triggeredWrites where !CreateScript.isOwn(trigger) {
            written.formUnion(tables)
        }
        if let own = written.first(where: { CreateScript.isOwn($0) && !isTools($0) }) {
            throw StoreError(
                .misuse,
                "“\(own)” belongs to Martlet, which captures and sends edits with it. Read it, but"
                    + " write the app's tables only.")
        }
    }

    /// Refuses a temporary table with the name of a table in the file. The connection would use the
    /// temporary one from then on, so that later writes would not be captured, and would be lost
    /// when the connection is closed.
    /// - Throws: `StoreError` `.misuse`.
    private func refuseShadows(_ access: TableAccess) throws {
        for name in access.temporaries {
            let isThere = try session.connection.statement(
                "SELECT 1 FROM main.sqlite_schema WHERE name = ? COLLATE NOCASE")
            isThere.bind(1, text: name)
            defer { isThere.reset() }
            guard try isThere.step() || CreateScript.isOwn(name) else { continue }
            throw StoreError(
                .misuse,
                "A temporary “\(name)” would stand before the table or view of that name for all that"
                    + " follows on this connection. Give it another name.")
        }
    }

    /// Inserts a record of a synchronised type.
    /// - Parameters:
    ///   - type: The entity type's name.
    ///   - attributes: Values by name. A column without a value gets its default.
    ///   - id: The key, for a type with text keys; nil for a random one. Martlet always makes
    ///     integer keys.
    /// - Returns: The record's id. An integer id is temporary until the server has assigned the
    ///   permanent one. The result is 0, which no record has, if SQLite skips the record because of
    ///   a constraint's ON CONFLICT IGNORE or a trigger.
    /// - Throws: `StoreError` `.unknown` for an unknown type or attribute, `.value` for a value
    ///   that does not fit, `.constraint` for a violated constraint; any error of a hook.
    @discardableResult
    public func insert(
        _ type: String, _ attributes: Attributes, id: String? = nil
    ) throws -> RecordID {
        try checkValid()
        let store = try synchronised()
        let index = try store.index(of: type)
        try check(attributes, of: store.schema.types[index])
        let record: RecordID
        switch store.schema.types[index].keyKind {
        case .integer:
            guard id == nil else {
                throw StoreError(
                    .value, "The key of \(type) is an integer and is made by Martlet; leave it out."
                )
            }
            record = try takeTemporaryID()
        case .text:
            record = .text(id ?? newTextKey())
            if let mismatch = RecordTable.mismatch(record, store.schema.types[index]) {
                throw StoreError(.value, "The key of \(type): \(mismatch).")
            }
        }
        let attributes = try resolved(attributes, of: store.schema.types[index], store)
        let write = RowWrite(
            operation: .insert, table: type, key: record, values: attributes.sqlValues)
        let outcome = try hooked(write) {
            try store.tables[index].insert(record, attributes, absentMeansNull: false)
            return RowOutcome(isWritten: session.connection.changes > 0)
        }
        return outcome.isWritten ? record : .integer(0)
    }

    /// Changes attributes of a record. A temporary id finds its record for ever.
    /// - Returns: Whether the record was written. It is false if there is no such record, or if
    ///   SQLite skips it because of a constraint's ON CONFLICT IGNORE or a trigger.
    /// - Throws: `StoreError` `.unknown` for an unknown type or attribute, `.value` for a value
    ///   that does not fit, `.constraint` for a violated constraint; any error of a hook.
    @discardableResult
    public func update(_ type: String, _ id: RecordID, _ attributes: Attributes) throws -> Bool {
        try checkValid()
        let store = try synchronised()
        let index = try store.index(of: type)
        try check(attributes, of: store.schema.types[index])
        let current = try store.resolve(id, type: index)
        let attributes = try resolved(attributes, of: store.schema.types[index], store)
        let write = RowWrite(
            operation: .update, table: type, key: current, values: attributes.sqlValues)
        return try hooked(write) {
            RowOutcome(isWritten: try store.tables[index].update(current, attributes))
        }.isWritten
    }

    /// Deletes a record, and carries out the ON DELETE actions of the references to it.
    /// - Returns: Whether a record was deleted.
    /// - Throws: `StoreError` `.unknown` for an unknown type, `.constraint` if a reference forbids
    ///   the deletion; any error of a hook.
    @discardableResult
    public func delete(_ type: String, _ id: RecordID) throws -> Bool {
        try checkValid()
        let store = try synchronised()
        let index = try store.index(of: type)
        let current = try store.resolve(id, type: index)
        let write = RowWrite(operation: .delete, table: type, key: current, values: nil)
        return try hooked(write) {
            RowOutcome(isWritten: try store.tables[index].delete(current))
        }.isWritten
    }

    /// Runs `body` as a whole or not at all, within the save. If `body` throws, only its own writes
    /// are undone. Savepoints can be nested.
    /// - Throws: The error of `body`; `StoreError` `.misuse` if the save was already undone.
    public func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
        try checkValid()
        savepoints += 1
        let name = "martlet_savepoint_\(savepoints)"
        defer { savepoints -= 1 }
        let nextID = nextTemporaryID
        let collector = session.connection.changeCollector
        try session.connection.run("SAVEPOINT \(name)")
        let mark = collector?.mark() ?? 0
        do {
            let result = try body()
            try session.connection.run("RELEASE \(name)")
            collector?.release()
            return result
        } catch {
            nextTemporaryID = nextID
            collector?.rollBack(to: mark)
            // If SQLite has rolled back the whole transaction, there is nothing left to undo.
            if session.connection.isInTransaction {
                try session.connection.run("ROLLBACK TO \(name)")
                try session.connection.run("RELEASE \(name)")
            }
            session.rolledBack()
            throw StoreError.of(error)
        }
    }

    /// Returns the same attributes. Temporary ids in references are replaced by the permanent ids
    /// that the device knows.
    /// - Throws: `StoreError` `.value` if an attribute cannot hold its value by the server's rules.
    private func resolved(
        _ attributes: Attributes, of type: EntityType, _ store: any SyncedTables
    ) throws -> Attributes {
        var values = attributes.values
        for (position, name) in attributes.names.enumerated() {
            if let attribute = type[attribute: name],
                let mismatch = RecordTable.mismatch(values[position], attribute)
            {
                throw StoreError(.value, "\(type.name).\(name): \(mismatch).")
            }
            guard case .integer(let number) = values[position], number < 0,
                let reference = type.reference(of: name),
                let target = store.schema.index(of: reference.target),
                case .integer(let permanent) = try store.resolve(.integer(number), type: target)
            else { continue }
            values[position] = .integer(permanent)
        }
        return Attributes(names: attributes.names, values: values)
    }

    /// Checks the names of attributes.
    /// - Throws: `StoreError` `.unknown` if a name is no attribute, or if the database computes it.
    private func check(_ attributes: Attributes, of type: EntityType) throws {
        for name in attributes.names {
            guard let attribute = type[attribute: name], !attribute.isGenerated else {
                throw StoreError(
                    .unknown, "\(type.name) has no attribute \(name) that can be written.")
            }
        }
    }
}

// MARK: - Keys

extension WriteContext {
    /// Returns the next temporary id, and moves on to the one below it.
    func takeTemporaryID() throws -> RecordID {
        try passNotedIDs()
        defer { nextTemporaryID -= 1 }
        return .integer(nextTemporaryID)
    }

    /// Moves the next temporary id below the ids that the app's own statements took with
    /// `martlet_new_id`.
    package func passNotedIDs() throws {
        guard let lowest = try session.store?.lowestNotedID else { return }
        if lowest <= nextTemporaryID, lowest > .min { nextTemporaryID = lowest - 1 }
    }

    /// Returns a random UUID, version 4 (RFC 9562).
    func newTextKey() -> String {
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

extension Attributes {
    /// The same attributes as values of SQLite.
    var sqlValues: RecordValues {
        RecordValues(names: names, values: values.map { SQLValue($0) })
    }
}
