internal import Foundation
internal import OpenSSLKit
internal import SQLiteKit

/// The tokens of a data directory, in `tokens.sqlite`. The file has the SHA-256 of each token, and
/// not the token itself.
///
/// The calls block. Any number of processes may have the same file open.
///
/// ```swift
/// let store = try TokenStore(directory: "/srv/martlet")
/// let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
/// let (token, record) = try store.create(dataSet: "club", user: "kim", now: now)
/// _ = try store.revoke(record.identifier, now: now)
/// ```
public final class TokenStore {
    /// The tables of the file.
    private static let shape = """
        CREATE TABLE IF NOT EXISTS martlet_tokens (
            hash BLOB NOT NULL PRIMARY KEY,
            identifier TEXT NOT NULL UNIQUE,
            dataset TEXT NOT NULL,
            user TEXT,
            roles TEXT NOT NULL,
            device TEXT,
            created INTEGER NOT NULL,
            revoked INTEGER
        ) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_salt (salt BLOB NOT NULL);
        """

    /// The time to wait for another process that has the file locked, in milliseconds.
    static let patienceMilliseconds: Int32 = 5_000

    let connection: Connection

    /// Opens the store of a data directory, and creates both if they are missing.
    ///
    /// - Throws: `ServerFailure` if the directory cannot be created; `SQLiteError`.
    public init(directory: String) throws {
        try Self.makeDirectory(directory)
        let path = Self.path(in: directory)
        connection = try Connection(
            path: path, busyTimeoutMilliseconds: Self.patienceMilliseconds)
        try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        try connection.execute(Self.shape)
        // The hashes of long random tokens reveal nothing, but no other user needs them.
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: path)
        for suffix in ["", "-wal", "-shm"] { FileOwner.assign(path + suffix, in: directory) }
        try connection.transaction {
            guard try connection.integer("SELECT count(*) FROM martlet_salt") == 0 else { return }
            let statement = try connection.statement("INSERT INTO martlet_salt VALUES (?)")
            statement.bind(1, blob: secureRandomBytes(32))
            try statement.run()
        }
    }

    static func path(in directory: String) -> String { directory + "/tokens.sqlite" }

    static func makeDirectory(_ directory: String) throws {
        guard !FileManager.default.fileExists(atPath: directory) else { return }
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        } catch {
            throw ServerFailure(
                "The data directory cannot be made; give --data a folder you may write to.")
        }
    }

    /// Creates a token.
    ///
    /// - Parameters:
    ///   - dataSet: The name of the data set that the token opens.
    ///   - user: The name of the person, for the log and the rules; nil if the token names nobody.
    ///   - roles: The roles by which the rules file grants rights.
    ///   - device: The name that a person gives to the token's device.
    ///   - now: The time, in milliseconds since 1970.
    /// - Returns: The token, which is shown only here and stored nowhere, and its record.
    /// - Throws: `ServerFailure` if the name cannot be a data set's, or a text is too long or has
    ///   control characters; `SQLiteError`.
    public func create(
        dataSet: String, user: String? = nil, roles: [String] = [], device: String? = nil,
        now: Int64
    ) throws -> (token: String, record: TokenRecord) {
        try DataSetName.check(dataSet)
        try TokenText.check([user, device].compactMap { $0 } + roles)
        let token = "mt_" + Hexadecimal.text(secureRandomBytes(32))
        let record = TokenRecord(
            identifier: Hexadecimal.text(secureRandomBytes(6)), dataSet: dataSet, user: user,
            roles: roles, device: device, created: now, revoked: nil)
        try connection.transaction {
            let statement = try connection.statement(
                "INSERT INTO martlet_tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)")
            statement.bind(1, blob: SHA256.digest([UInt8](token.utf8)))
            statement.bind(2, text: record.identifier)
            statement.bind(3, text: dataSet)
            bind(statement, 4, user)
            statement.bind(5, text: roles.joined(separator: "\n"))
            bind(statement, 6, device)
            statement.bind(7, integer: now)
            try statement.run()
        }
        return (token, record)
    }

    /// Returns all tokens, good or revoked, the oldest first.
    ///
    /// - Throws: `SQLiteError`.
    /// - Complexity: O(*n*) in the number of tokens.
    public func list() throws -> [TokenRecord] {
        try entries().map(\.record)
    }

    /// Revokes a token, from the next request on, in running servers too.
    ///
    /// - Parameters:
    ///   - identifier: The identifier in the token's record.
    ///   - now: The time, in milliseconds since 1970.
    /// - Returns: False if no good token has that identifier.
    /// - Throws: `SQLiteError`.
    public func revoke(_ identifier: String, now: Int64) throws -> Bool {
        try connection.transaction {
            let statement = try connection.statement(
                "UPDATE martlet_tokens SET revoked = ? WHERE identifier = ? AND revoked IS NULL")
            statement.bind(1, integer: now)
            statement.bind(2, text: identifier)
            try statement.run()
            return connection.changes == 1
        }
    }

    // MARK: - For the server

    struct Entry: Sendable {
        let hash: [UInt8]
        let record: TokenRecord
    }

    /// Returns a number that changes whenever another connection has committed to the file.
    func version() throws -> Int64 {
        try connection.integer("PRAGMA data_version") ?? 0
    }

    func setPatience(milliseconds: Int32) {
        connection.setBusyTimeout(milliseconds: milliseconds)
    }

    func entries() throws -> [Entry] {
        let statement = try connection.statement(
            """
            SELECT hash, identifier, dataset, user, roles, device, created, revoked
            FROM martlet_tokens ORDER BY created, identifier
            """)
        defer { statement.reset() }
        var entries: [Entry] = []
        while try statement.step() {
            let roles = statement.text(4).split(separator: "\n").map(String.init)
            let record = TokenRecord(
                identifier: statement.text(1), dataSet: statement.text(2),
                user: text(statement, 3), roles: roles, device: text(statement, 5),
                created: statement.integer(6),
                revoked: statement.isNull(7) ? nil : statement.integer(7))
            entries.append(Entry(hash: statement.blob(0), record: record))
        }
        return entries
    }

    /// Returns the random salt that was made with the file. It turns a token that somebody chose
    /// into a name that reveals nothing.
    func salt() throws -> [UInt8] {
        let statement = try connection.statement("SELECT salt FROM martlet_salt")
        defer { statement.reset() }
        return try statement.step() ? statement.blob(0) : []
    }

    func bind(_ statement: Statement, _ index: Int32, _ text: String?) {
        if let text { statement.bind(index, text: text) } else { statement.bindNull(index) }
    }

    private func text(_ statement: Statement, _ column: Int32) -> String? {
        statement.isNull(column) ? nil : statement.text(column)
    }
}

/// Checks the names of users, roles and devices.
enum TokenText {
    /// Returns whether a text is 1 to 128 bytes long, without control characters.
    static func isValid(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f }
    }

    /// Checks texts.
    ///
    /// - Throws: `ServerFailure` if one is not valid.
    static func check(_ texts: [String]) throws(ServerFailure) {
        guard texts.allSatisfy(isValid) else {
            throw ServerFailure(
                """
                Users, roles and device names are 1 to 128 bytes long and hold no control \
                characters.
                """)
        }
    }
}

@available(*, unavailable)
extension TokenStore: Sendable {}
