package import PostgresKit

/// A database with the data set that was found in it.
package struct ServedDatabase: Sendable {
    package let address: PostgresAddress
    package let name: String
    package let identity: String
    /// The key that seals blocks of its log outside the database.
    package let cacheKey: [UInt8]

    /// Finds the data set of a database, and upgrades Martlet's own tables to this release's
    /// format. Connects once; blocks.
    /// - Throws: `PostgresRefusal` if the database cannot be served.
    package static func find(_ address: PostgresAddress) throws(PostgresRefusal) -> ServedDatabase {
        do {
            let connection = try PostgresConnection(address, options(name: "martlet start"))
            defer { connection.close() }
            guard let found = try MartletTables.dataSet(on: connection) else {
                throw PostgresRefusal(
                    """
                    The database (\(address)) has no data set. Make one with “martlet postgres \
                    init”, or take its tables with “martlet postgres adopt”.
                    """)
            }
            guard try !connection.query("SELECT pg_catalog.pg_is_in_recovery()").boolean(0, 0)
            else {
                throw PostgresRefusal(
                    """
                    The database (\(address)) is a standby, which cannot be written to. Give the \
                    address of the primary, or add target_session_attrs=read-write to it.
                    """)
            }
            try MartletTables.upgrade(on: connection)
            try checkRights(connection, address)
            try ExternalDrain.findStrays(on: connection)
            let key = try connection.query("SELECT cache_key::text FROM _martlet.dataset")
            return ServedDatabase(
                address: address, name: found.name, identity: found.identity,
                cacheKey: [UInt8](try key.text(0, 0).utf8))
        } catch let refusal as PostgresRefusal {
            throw refusal
        } catch let error as PostgresError {
            throw PostgresRefusal(error, at: address)
        } catch {
            throw PostgresRefusal("The database (\(address)): \(error)")
        }
    }

    /// Returns the options of a server's connections. If row-level security begins to hide rows from the
    /// server's role, statements fail: a hidden row would look like a deleted one.
    /// - Parameter name: The name of the connection in the server's lists.
    package static func options(name: String, readOnly: Bool = false) -> PostgresOptions {
        PostgresOptions(
            connecting: .seconds(5), readOnly: readOnly, allowsHiddenRows: false, name: name)
    }

    private static let rights = ["SELECT", "INSERT", "UPDATE", "DELETE"]

    /// Checks the role's rights. Otherwise the first change would reveal a missing one, with
    /// devices waiting for it.
    private static func checkRights(
        _ connection: PostgresConnection, _ address: PostgresAddress
    ) throws {
        let all = rights.map { "pg_catalog.has_table_privilege(c.oid, '\($0)')" }
            .joined(separator: " AND ")
        let rows = try connection.query(
            """
            SELECT c.oid::regclass::text, current_user::text FROM pg_catalog.pg_class AS c \
            WHERE c.relkind IN ('r', 'p') \
            AND (c.relnamespace = '_martlet'::regnamespace \
            OR c.oid IN (SELECT relation::oid FROM _martlet.types)) AND NOT (\(all)) \
            ORDER BY 1
            """)
        guard rows.count > 0 else { return }
        var tables: [String] = []
        for row in 0..<rows.count { tables.append(try rows.text(row, 0)) }
        throw PostgresRefusal(
            """
            The role “\(try rows.text(0, 1))” lacks rights in the database (\(address)). Run there, \
            as the tables' owner: GRANT \(rights.joined(separator: ", ")) ON \
            \(tables.joined(separator: ", ")) TO \
            \(PostgresConnection.quoted(try rows.text(0, 1)));
            """)
    }
}

/// The reason why a database cannot be served, and what to do.
package struct PostgresRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// Makes the refusal for an error of the server or of the way to it. It never holds a password.
    package init(_ error: PostgresError, at address: PostgresAddress) {
        let words = error.message.split(whereSeparator: \.isNewline)
            .map { $0.trimmingPrefix { $0.isWhitespace } }.joined(separator: "; ")
        let end = words.hasSuffix(".") ? "" : "."
        let remedy =
            error.kind == .forbidden
            ? """
            Grant the role what it lacks: at least USAGE on the schema “_martlet”, and SELECT, INSERT, \
            UPDATE and DELETE on its tables and on the synchronised ones.
            """ : error.remedy
        self.init("The database (\(address)) cannot be used: \(words)\(end) \(remedy)")
    }
}
