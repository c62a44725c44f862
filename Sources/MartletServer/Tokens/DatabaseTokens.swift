internal import MartletPostgres
internal import OpenSSLKit
package import PostgresKit

/// Creates, lists and revokes tokens.
package protocol TokenKeeper {
    /// Creates a token; see `TokenStore`.
    func create(
        dataSet: String, user: String?, roles: [String], device: String?, now: Int64
    ) throws -> (token: String, record: TokenRecord)
    /// Returns all tokens, good or revoked, the oldest first.
    func list() throws -> [TokenRecord]
    /// Revokes a token.
    ///
    /// - Returns: False if no good token has that identifier.
    func revoke(_ identifier: String, now: Int64) throws -> Bool
}

/// A source of a server's tokens.
protocol TokenSource {
    /// Returns a number that changes whenever a token may have changed.
    func version() throws -> Int64
    func entries() throws -> [TokenStore.Entry]
    /// True if the version has to be requested from another machine.
    var isRemote: Bool { get }
    /// Sets how long to wait for other processes that have a file locked. It does nothing for
    /// databases.
    func setPatience(milliseconds: Int32)
}

extension TokenStore: TokenKeeper, TokenSource {
    var isRemote: Bool { false }
}

/// The tokens in a database, next to its data set.
package struct DatabaseTokens: TokenKeeper, TokenSource {
    private let tokens: PostgresTokens
    private let dataSet: String

    var isRemote: Bool { true }

    func setPatience(milliseconds: Int32) {}

    /// Connects to a database, and blocks.
    ///
    /// - Throws: `PostgresRefusal` if there is no data set; `PostgresError`.
    package init(_ address: PostgresAddress) throws {
        tokens = PostgresTokens(address)
        dataSet = try tokens.dataSet()
    }

    /// Makes the tokens of a database whose data set is known.
    init(_ database: ServedDatabase) {
        tokens = PostgresTokens(database.address)
        dataSet = database.name
    }

    package func create(
        dataSet: String, user: String?, roles: [String], device: String?, now: Int64
    ) throws -> (token: String, record: TokenRecord) {
        guard dataSet == self.dataSet else {
            throw ServerFailure(
                "The data set of this database is called “\(self.dataSet)”, not “\(dataSet)”.")
        }
        try TokenText.check([user, device].compactMap { $0 } + roles)
        let token = "mt_" + Hexadecimal.text(secureRandomBytes(32))
        let row = PostgresTokens.Row(
            hash: SHA256.digest([UInt8](token.utf8)),
            identifier: Hexadecimal.text(secureRandomBytes(6)), user: user, roles: roles,
            device: device, created: now, revoked: nil)
        try tokens.add(row)
        return (token, record(row))
    }

    package func list() throws -> [TokenRecord] {
        try tokens.rows().map(record)
    }

    package func revoke(_ identifier: String, now: Int64) throws -> Bool {
        try tokens.revoke(identifier, now: now)
    }

    func version() throws -> Int64 { try tokens.version() }

    func entries() throws -> [TokenStore.Entry] {
        try tokens.rows().map { TokenStore.Entry(hash: $0.hash, record: record($0)) }
    }

    private func record(_ row: PostgresTokens.Row) -> TokenRecord {
        TokenRecord(
            identifier: row.identifier, dataSet: dataSet, user: row.user, roles: row.roles,
            device: row.device, created: row.created, revoked: row.revoked)
    }
}
