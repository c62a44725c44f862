public import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// What a local save can do: all that reading can, and writing. Valid inside the closure it was
/// given to.
public final class WriteContext: ReadContext {
    private let randomBits: () -> UInt64
    /// The temporary id the next new record gets: negative, going down.
    public private(set) var nextTemporaryID: Int64
    private var savepoints = 0
    /// How deep writes of hooks are nested.
    var hookDepth = 0

    /// The first temporary id of a file. Those of new records are below it.
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
        // Without a transaction each statement would be a save of its own.
        guard session.connection.isInTransaction else {
            throw StoreError(
                .misuse,
                "An earlier failure has taken the whole save back, so nothing more can be written"
                    + " in it. Let that error leave the closure.")
        }
    }

    /// The prefixes of tables that imports, commands and demonstrations keep next to the records
    /// through this context.
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
        // Martlet's own triggers write what they note.
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

    /// A temporary table would take the place of the one in the file, for all that the connection still
    /// does: what is written then is never captured, and gone at the end.
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
    ///   - attributes: Values by name; a column left out takes its default.
    ///   - id: The key, for types with text keys; nil makes a random one. Integer keys are always
    ///     made here.
    /// - Returns: The record's id: temporary for integer keys, until the server has assigned one. It is 0, which no
    ///   record has, if SQLite has passed the record over: a constraint's ON CONFLICT IGNORE or a trigger says so.
    /// - Throws: `StoreError` for unknown names, values that do not fit, violated constraints.
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

    /// Changes attributes of a record. A temporary id finds the record for ever.
    /// - Returns: Whether the record was written: not if there is none, or if SQLite has passed it over, because a
    ///   constraint's ON CONFLICT IGNORE or a trigger says so.
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

    /// Deletes a record, and what its references' ON DELETE actions say.
    /// - Returns: Whether there was such a record.
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

    /// Runs `body` so that it happens as a whole or not at all, within the save: where it throws,
    /// only its own writes are undone. May be nested.
    /// - Throws: What `body` throws.
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
            // A failure so bad that SQLite has rolled everything back leaves nothing to undo.
            if session.connection.isInTransaction {
                try session.connection.run("ROLLBACK TO \(name)")
                try session.connection.run("RELEASE \(name)")
            }
            session.rolledBack()
            throw StoreError.of(error)
        }
    }

    /// The same, with temporary ids in references replaced by permanent ones where they are known.
    /// - Throws: `StoreError` `.value` for a value that its attribute cannot hold, by the server's
    ///   rules.
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

    /// - Throws: `StoreError` `.unknown` for a name that is no attribute, or one that the database computes.
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
    /// The next temporary id.
    func takeTemporaryID() throws -> RecordID {
        try passNotedIDs()
        defer { nextTemporaryID -= 1 }
        return .integer(nextTemporaryID)
    }

    /// Moves the next temporary id below those that the app's own statements have taken from
    /// `martlet_new_id`.
    package func passNotedIDs() throws {
        guard let lowest = try session.store?.lowestNotedID else { return }
        if lowest <= nextTemporaryID, lowest > .min { nextTemporaryID = lowest - 1 }
    }

    /// A random UUID, version 4 (RFC 9562).
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
    /// The same as SQLite holds it.
    var sqlValues: RecordValues {
        RecordValues(names: names, values: values.map { SQLValue($0) })
    }
}
