import Foundation
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres

/// A database of a test's own on the shared server; dropped with the server.
struct TestDatabase: Sendable {
    let name: String
    let url: String
    let address: PostgresAddress

    static func make(on servers: DatabaseServers? = nil) async throws -> TestDatabase {
        let url: String
        if let servers {
            url = servers.postgresURL
        } else {
            url = try await DatabaseServers.shared().postgresURL
        }
        let shared = try PostgresAddress(url)
        let name = "t_" + UUID().uuidString.replacing("-", with: "").lowercased()
        try await blocking {
            try PostgresConnection(shared, PostgresOptions(statement: nil, answer: nil))
                .execute("CREATE DATABASE \(name)")
        }
        let parts = try #require(URLComponents(string: url))
        var changed = parts
        changed.path = "/" + name
        return TestDatabase(
            name: name, url: changed.string ?? "", address: shared.setting("dbname", name))
    }

    /// Runs `body` with a connection of its own, off the cooperative pool.
    func connected<Answer: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> Answer
    ) async throws -> Answer {
        try await Self.connected(to: address, body)
    }

    /// Runs `body` with a connection to any address.
    static func connected<Answer: Sendable>(
        to address: PostgresAddress,
        _ body: @escaping @Sendable (PostgresConnection) throws -> Answer
    ) async throws -> Answer {
        try await blocking { try body(try PostgresConnection(address)) }
    }

    /// Runs what blocks on a thread of its own.
    static func blocking<Answer: Sendable>(
        _ body: @escaping @Sendable () throws -> Answer
    ) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}

extension PostgresConnection {
    /// Makes Martlet's tables and registers tables as they are, without their rows.
    func register(_ tables: [String]) throws {
        try MartletTables.create(on: self, name: "teams", identity: "0123456789abcdef")
        for table in tables {
            _ = try query(
                "INSERT INTO _martlet.types (name, relation) VALUES ($1, $2::text::regclass)",
                [.text(table), .text("public.\(table)")])
        }
    }
}
