import Foundation
import RedisKit
import TestDatabases

/// What the tests of this target ask of the shared server.
enum TestCache {
    /// An address of the shared server.
    /// - Parameter proxy: Stands between.
    static func address(through proxy: CuttingProxy? = nil) async throws -> RedisAddress {
        let servers = try await DatabaseServers.shared()
        guard let proxy else { return try RedisAddress(servers.redisURL) }
        return try RedisAddress("redis://127.0.0.1:\(proxy.port)")
    }

    /// Patient: the machine may be busy.
    static let patient = RedisOptions(connecting: .seconds(30), answer: .seconds(30))

    /// Runs `body` with a connection of its own, off the cooperative pool.
    static func connected<Answer: Sendable>(
        _ body: @escaping @Sendable (RedisConnection) throws -> Answer
    ) async throws -> Answer {
        let address = try await address()
        return try await blocking { try body(try RedisConnection(address, patient)) }
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
    static func error(_ body: () throws -> Void) throws -> RedisError {
        do {
            try body()
        } catch let error as RedisError {
            return error
        }
        throw NoError()
    }

    /// A key that no other test uses.
    static func key(_ word: String) -> String { "\(word):\(UUID().uuidString)" }
}

/// An error was expected and there was none.
struct NoError: Error {}
