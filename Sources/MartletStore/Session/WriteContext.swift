internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// A save: it reads as a `ReadContext` does, and writes. It is valid only inside the closure that
/// receives it. The whole closure is one transaction.
///
/// ```swift
/// try await client.write { context in
///     let team = try context.insert("teams", ["name": "Kestrels"])
///     try context.insert("players", ["name": "Ann", "team_id": team.sqlValue])
///     try context.update("teams", team, ["city": "Leeds"])
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
