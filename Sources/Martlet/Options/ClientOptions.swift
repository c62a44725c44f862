internal import Foundation
public import MartletDevice
public import MartletStore

/// The options of a client: when it exchanges, what it reports, and what a test can replace. The
/// defaults are those of the platform.
///
/// ```swift
/// var options = ClientOptions()
/// options.pull = .polling(every: .seconds(300))
/// options.tokenProvider = { refused in try await newToken(after: refused) }
/// let client = try await MartletClient.open(
///     path: path, schema: script, server: server, token: token, options: options)
/// ```
public struct ClientOptions: Sendable {
    /// The rule by which a started client asks the server for changes; see `PullPolicy`.
    public var pull = PullPolicy.live()
    /// The limits and waiting times of the device. `pull` overrides its settings for polling and
    /// the stream.
    package var node = DeviceNode.Options()
    /// Returns the time in milliseconds since 1970.
    public var now: @Sendable () -> Int64 = {
        Int64((Date().timeIntervalSince1970 * 1_000).rounded())
    }
    /// Returns evenly distributed random bits, for identities and jitter.
    package var randomBits: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    /// The number of reading connections.
    public var readers = 2
    /// Hooks that watch, refuse and extend local writes.
    public var hooks = WriteHooks()
    /// Models that receive remote changes in addition to the tables.
    public var models = ModelRegistry()
    /// Returns the engine that applies remote changes. The argument is the client's own engine; a
    /// test can wrap or replace it.
    public var engine: @Sendable (any ReconciliationEngine) -> any ReconciliationEngine = { $0 }
    /// The log that reports values kept aside, and quarantined and repeated records.
    public var log = ClientLog.standardError()
    /// The maximum size of the file with own accepted change sets, in bytes. The device keeps them
    /// for 30 days, in case the server is restored from a backup that lacks them; 0 keeps none.
    public var mostKeptBytes: Int64 = 16 << 20
    /// Receives statements after they have run, all or the slow ones; for development.
    public var trace: StatementTrace?
    /// The interval of the checks for external writes while the app observes something.
    public var externalWritesPeriod: Duration = .milliseconds(150)
    /// Returns the next token if the server refuses the current one, or if there is none yet, so that
    /// the client continues automatically. Only clients that are opened with a server's address use it.
    public var tokenProvider: TokenProvider?
    /// The identity of the data set that the file must belong to (`ClientStatus.dataSet`), if the
    /// app knows it. If nil, the device trusts the first server that accepts the token. With an
    /// identity, the device takes nothing from another data set, and does not open a file of
    /// another one.
    public var dataSet: String?
    /// The data that a device begins with if it has none yet; nil begins empty. `file` has an
    /// effect only if the device's file does not exist yet.
    public var seeding: Seeding?
    /// Receives the progress of the first download.
    public var seedingProgress: @Sendable (SeedingProgress) -> Void = { _ in }
    /// Waits for a duration; a test can replace it.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Creates the default options.
    public init() {}
}
