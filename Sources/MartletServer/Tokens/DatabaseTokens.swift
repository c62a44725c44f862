internal import MartletPostgres
internal import OpenSSLKit
package import PostgresKit

/// Where tokens are made, listed and revoked.
package protocol TokenKeeper {
    /// Makes a token; see `TokenStore`.
    func create(
        dataSet: String, user: String?, roles: [String], device: String?, now: Int64
    ) throws -> (token: String, record: TokenRecord)
    /// Every token, good or revoked, the oldest first.
    func list() throws -> [TokenRecord]
    /// Makes a token worthless.
    /// - Returns: False when no good token has that identifier.
    func revoke(_ identifier: String, now: Int64) throws -> Bool
}

/// Where a server's tokens come from.
protocol TokenSource {
    /// Changes whenever a token may have.
    func version() throws -> Int64
    func entries() throws -> [TokenStore.Entry]
    /// Whether asking for the version is a question to another machine.
    var isRemote: Bool { get }
    /// Sets how long to wait for other processes that have a file locked; for databases nothing.
    func setPatience(milliseconds: Int32)
}

extension TokenStore: TokenKeeper, TokenSource {
    var isRemote: Bool { false }
}

/// The tokens that stand in a database, with its data set.
package struct DatabaseTokens: TokenKeeper, TokenSource {
    private let tokens: PostgresTokens
    private let dataSet: String

    var isRemote: Bool { true }

    func setPatience(milliseconds: Int32) {}

    /// Connects. Blocks.
    /// - Throws: `PostgresRefusal` where there is no data set; `PostgresError`.
    package init(_ address: PostgresAddress) throws {
        tokens = PostgresTokens(address)
        dataSet = try tokens.dataSet()
    }

    /// For a database whose data set is known.
    init(_ place: PostgresPlace) {
        tokens = PostgresTokens(place.address)
        dataSet = place.name
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
