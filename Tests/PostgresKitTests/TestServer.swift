import Foundation
import PostgresKit
import TestDatabases
import Testing

/// What the tests of this target ask of the shared server.
enum TestServer {
    static func address() async throws -> PostgresAddress {
        try PostgresAddress(try await DatabaseServers.shared().postgresURL)
    }

    /// The address with another port: a proxy's.
    static func address(through proxy: CuttingProxy) async throws -> PostgresAddress {
        try await address().setting("port", "\(proxy.port)")
    }

    /// Runs `body` with a connection of its own, off the cooperative pool.
    static func connected<Answer: Sendable>(
        _ options: PostgresOptions = PostgresOptions(),
        _ body: @escaping @Sendable (PostgresConnection) throws -> Answer
    ) async throws -> Answer {
        let address = try await address()
        return try await blocking {
            try body(try PostgresConnection(address, options))
        }
    }

    /// Runs what blocks on a thread of its own.
    static func blocking<Answer: Sendable>(
        _ body: @escaping @Sendable () throws -> Answer
    ) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    /// The error `body` ends with.
    static func error(_ body: () throws -> Void) throws -> PostgresError {
        do {
            try body()
        } catch let error as PostgresError {
            return error
        }
        throw NoError()
    }

    /// A name that no other test uses.
    static func name(_ word: String) -> String {
        "\(word)_\(UUID().uuidString.replacingOccurrences(of: "-", with: "").lowercased())"
    }
}

/// An error was expected and there was none.
struct NoError: Error {}
