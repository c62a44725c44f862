package import ConnectionKit
package import RedisKit

/// A connection to Redis that may be missing: a question that is not answered is worth a miss.
///
/// Calls block, at most as long as `options` say. After a failure nothing is tried for a while, and
/// longer after each further one, so a server that is down or stuck costs next to nothing.
/// Confined to whoever holds it.
package final class RedisLink {
    /// Short: a cache that is slower than what it saves is of no use.
    package static let options = RedisOptions(
        connecting: .milliseconds(250), answer: .milliseconds(250), longestReply: 16 << 20)

    package let counters: CacheCounters
    private let address: RedisAddress
    private let options: RedisOptions
    private let pace: Pace
    private let report: @Sendable (RedisError?) -> Void
    private var backoff: Backoff
    private var connection: RedisConnection?
    /// Before this moment nothing is tried.
    private var resting = Duration.zero
    private var isFailing = false

    /// - Parameters:
    ///   - report: Told the error when Redis begins to fail, and nil when it answers again.
    package init(
        _ address: RedisAddress, counters: CacheCounters, options: RedisOptions = RedisLink.options,
        pace: Pace = .system,
        backoff: Backoff = Backoff(first: .milliseconds(500), limit: .seconds(10)),
        report: @escaping @Sendable (RedisError?) -> Void = { _ in }
    ) {
        self.address = address
        self.counters = counters
        self.options = options
        self.pace = pace
        self.backoff = backoff
        self.report = report
    }

    /// Carries out commands in one round trip.
    /// - Returns: An answer for each; nil where Redis does not answer, or is left alone for now.
    package func answers(to commands: [RedisCommand]) -> [RedisValue]? {
        guard pace.now() >= resting else { return nil }
        do throws(RedisError) {
            let answers = try connected().pipeline(commands)
            for case .error(let error) in answers {
                // A server without room, or without this command, still answers others.
                guard [.refused, .full, .readOnly].contains(error.kind) else { throw error }
                counters.count { $0.failures += 1 }
            }
            backoff.succeeded()
            if isFailing {
                isFailing = false
                report(nil)
            }
            return answers
        } catch {
            fail(error)
            return nil
        }
    }

    /// Makes the connection before it is needed; what that costs and what it holds is then there from
    /// the start. Without a server this is as a question that was not answered.
    package func connect() {
        guard pace.now() >= resting else { return }
        do throws(RedisError) { _ = try connected() } catch { fail(error) }
    }

    /// Hangs up.
    package func close() {
        connection?.close()
        connection = nil
    }

    private func connected() throws(RedisError) -> RedisConnection {
        if let connection {
            // A server that was started anew has hung up; the new one may answer.
            if connection.isUsable() { return connection }
            close()
        }
        let made = try RedisConnection(address, options)
        connection = made
        return made
    }

    private func fail(_ error: RedisError) {
        counters.count { $0.failures += 1 }
        close()
        var generator = Numbers(pace: pace)
        resting = pace.now() + backoff.failed(using: &generator)
        if !isFailing {
            isFailing = true
            report(error)
        }
    }

    private struct Numbers: RandomNumberGenerator {
        let pace: Pace

        func next() -> UInt64 { pace.random() }
    }
}

@available(*, unavailable)
extension RedisLink: Sendable {}
