internal import Foundation
public import MartletDevice
public import MartletStore

/// How a client keeps in step. The seams to time and chance have the platform's as default.
public struct ClientOptions: Sendable {
    /// When others' changes are asked for, between `start()` and `stop()`.
    public var pull = PullPolicy.live()
    /// How patient and how greedy the device is. `pull` is what counts for polling and the stream.
    public var node = DeviceNode.Options()
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64 = {
        Int64((Date().timeIntervalSince1970 * 1_000).rounded())
    }
    /// Evenly spread bits, for identities and jitter.
    public var randomBits: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    /// Reading connections.
    public var readers = 2
    /// What watches, refuses and adds to local writes.
    public var hooks = WriteHooks()
    /// What else takes in remote change, beside the tables.
    public var models = ModelRegistry()
    /// Returns the engine that applies remote change. It gets the client's own engine; a test can
    /// put its own in front or in its place.
    public var engine: @Sendable (any ReconciliationEngine) -> any ReconciliationEngine = { $0 }
    /// The log that reports values kept aside, and quarantined and repeated records.
    public var log = ClientLog.standardError()
    /// Bytes of the file for own accepted change sets. They are kept for 30 days, in case the
    /// server is restored from a backup that lacks them; 0 keeps none.
    public var mostKeptBytes: Int64 = 16 << 20
    /// Hears of statements as they are run; for development.
    public var trace: StatementTrace?
    /// How often to look whether another process has written, while anyone observes.
    public var externalWritesPeriod: Duration = .milliseconds(150)
    /// Gives the next token where the server refuses one, so that the client goes on by itself; for
    /// clients that are opened with a server's address.
    public var tokenProvider: TokenProvider?
    /// The identity of the data set the file is to belong to (`ClientStatus.dataSet`), where the app knows it
    /// from elsewhere; nil believes the first server that takes the token. Nothing of another data set is
    /// taken in, and a file of another one is not opened.
    public var dataSet: String?
    /// What to begin with where there is no data yet; nil begins empty. `file` counts only where
    /// there is no file either.
    public var seeding: Seeding?
    /// Hears how far the first download has come.
    public var seedingProgress: @Sendable (SeedingProgress) -> Void = { _ in }
    /// Waits; a test gives its own.
    public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    public init() {}
}
