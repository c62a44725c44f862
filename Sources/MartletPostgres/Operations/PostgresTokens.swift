package import PostgresKit

/// The tokens of a database's data set, in `_martlet.tokens`. All servers of the database accept
/// the same tokens. The table has only the SHA-256 of each token.
///
/// Calls block. The connection is made when it is needed, and again after it was lost.
package final class PostgresTokens {
    /// The stored data of a token.
    package struct Row: Hashable, Sendable {
        package let hash: [UInt8]
        package let identifier: String
        package let user: String?
        package let roles: [String]
        package let device: String?
        /// Milliseconds since 1970.
        package let created: Int64
        /// Milliseconds since 1970; nil while the token is valid.
        package let revoked: Int64?

        package init(
            hash: [UInt8], identifier: String, user: String?, roles: [String], device: String?,
            created: Int64, revoked: Int64?
        ) {
            self.hash = hash
            self.identifier = identifier
            self.user = user
            self.roles = roles
            self.device = device
            self.created = created
            self.revoked = revoked
        }
    }

    private let address: PostgresAddress
    private var connection: PostgresConnection?

    package init(_ address: PostgresAddress) {
        self.address = address
    }

    /// Returns the name of the tokens' data set.
    /// - Throws: `PostgresRefusal` or `AdoptionError` if there is none; `PostgresError`.
    package func dataSet() throws -> String {
        try working { connection in
            try MartletTables.upgrade(on: connection)
            guard let found = try MartletTables.dataSet(on: connection) else {
                throw PostgresRefusal("The database (\(self.address)) has no data set.")
            }
            return found.name
        }
    }

    /// Stores a new token.
    /// - Throws: `PostgresError` if it cannot be stored.
    package func add(_ row: Row) throws {
        try working { connection in
            try connection.transaction {
                _ = try connection.query(
                    """
                    INSERT INTO _martlet.tokens (hash, identifier, person, roles, device, created) \
                    VALUES ($1, $2, $3, $4, $5, $6)
                    """,
                    [
                        .binary(row.hash), .text(row.identifier), Self.value(row.user),
                        .text(row.roles.joined(separator: "\n")), Self.value(row.device),
                        .integer(row.created),
                    ])
                try Self.raise(connection)
            }
        }
    }

    /// Revokes a token.
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: False if no valid token has that identifier.
    /// - Throws: `PostgresError` if the statement fails.
    package func revoke(_ identifier: String, now: Int64) throws -> Bool {
        try working { connection in
            try connection.transaction {
                let rows = try connection.query(
                    """
                    UPDATE _martlet.tokens SET revoked = $2 \
                    WHERE identifier = $1 AND revoked IS NULL RETURNING 1::bigint
                    """, [.text(identifier), .integer(now)])
                try Self.raise(connection)
                return rows.count == 1
            }
        }
    }

    /// Returns every token, valid or revoked, the oldest first.
    /// - Throws: `PostgresError` if the query fails.
    package func rows() throws -> [Row] {
        try working { connection in
            let rows = try connection.query(
                """
                SELECT hash, identifier, person, roles, device, created, revoked \
                FROM _martlet.tokens ORDER BY created, identifier
                """)
            var found: [Row] = []
            for row in 0..<rows.count {
                func text(_ column: Int) throws -> String? {
                    try rows.isNull(row, column) ? nil : rows.text(row, column)
                }
                found.append(
                    Row(
                        hash: try rows.binary(row, 0), identifier: try rows.text(row, 1),
                        user: try text(2),
                        roles: try rows.text(row, 3).split(separator: "\n").map(String.init),
                        device: try text(4), created: try rows.integer(row, 5),
                        revoked: try rows.isNull(row, 6) ? nil : rows.integer(row, 6)))
            }
            return found
        }
    }

    /// Returns the version of the tokens, which rises with every change.
    /// - Throws: `PostgresError` if the query fails.
    package func version() throws -> Int64 {
        try working { connection in
            try connection.query("SELECT version FROM _martlet.token_version").integer(0, 0)
        }
    }

    private static func raise(_ connection: PostgresConnection) throws {
        _ = try connection.query("UPDATE _martlet.token_version SET version = version + 1")
    }

    private static func value(_ text: String?) -> PostgresValue {
        text.map { .text($0) } ?? .null
    }

    /// Runs `body` on the connection, and again on a new one if it was lost meanwhile. That does no
    /// harm, because the key refuses a second insertion.
    private func working<Answer>(_ body: (PostgresConnection) throws -> Answer) throws -> Answer {
        if let connection, !connection.isLost {
            do {
                return try body(connection)
            } catch let error as PostgresError where error.endsConnection {
                self.connection = nil
            }
        }
        let made = try PostgresConnection(
            address, ServedDatabase.options(name: "martlet tokens"))
        connection = made
        return try body(made)
    }
}
