package import ConnectionKit
package import RedisKit

/// A connection to Redis that may be missing. A command without an answer counts as a miss.
///
/// Calls block, at most for the time that `options` allow. After a failure the link rests for a
/// while, and longer after each further failure, so a server that is down or stuck costs next to
/// nothing. The link is confined to its holder.
package final class RedisLink {
    /// The times are short, because a cache is useless if it is slower than the work that it saves.
    package static let options = RedisOptions(
        connecting: .milliseconds(250), answer: .milliseconds(250), longestReply: 16 << 20)

    package let counters: CacheCounters
    private let address: RedisAddress
    private let options: RedisOptions
    private let pace: Pace
    private let report: @Sendable (RedisError?) -> Void
    private var backoff: Backoff
    private var connection: RedisConnection?
    /// The moment before which the link does not try.
    private var resting = Duration.zero
    private var isFailing = false

    /// Makes a link that does not connect yet.
    /// - Parameters:
    ///   - report: Receives the error when Redis begins to fail, and nil when it answers again.
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
    /// - Returns: An answer for each; nil if Redis does not answer, or the link is resting.
    package func answers(to commands: [RedisCommand]) -> [RedisValue]? {
        guard pace.now() >= resting else { return nil }
        do throws(RedisError) {
            let answers = try connected().pipeline(commands)
            for case .error(let error) in answers {
                // A server that has no room, or lacks this command, still answers other commands.
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

    /// Connects before the connection is needed, so that its costs arise at the start. If there is
    /// no server, this counts as a failure.
    package func connect() {
        guard pace.now() >= resting else { return }
        do throws(RedisError) { _ = try connected() } catch { fail(error) }
    }

    /// Closes the connection.
    package func close() {
        connection?.close()
        connection = nil
    }

    private func connected() throws(RedisError) -> RedisConnection {
        if let connection {
            // If the server was restarted, it has closed the connection; the new server may answer.
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
