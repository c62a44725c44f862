/// The options of a database.
public struct DatabaseOptions: Sendable {
    /// The number of reading connections.
    public var readers = 2
    /// The longest time to wait for another connection's lock.
    public var busyTimeout: Duration = .seconds(10)
    /// The number of prepared statements that each connection keeps.
    public var cachedStatements = 200
    /// Whether each commit is on the disk when `write` returns (`synchronous = FULL`). If not, a
    /// power cut may undo the last commits, but never a part of one.
    public var isDurable = true
    /// Hooks that watch, refuse and extend writes.
    public var hooks = WriteHooks()
    /// Receives statements after they have run, all or the slow ones; for development.
    public var trace: StatementTrace?
    /// The interval of the checks for external writes while the app observes something.
    public var externalWritesPeriod: Duration = .milliseconds(150)
    /// Waits for a duration; a test can replace it.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// A VFS registered with SQLite; nil uses the platform's. Tests use one with a disk that fails.
    package var vfs: String?
    /// Returns evenly distributed random bits, for random keys.
    package var randomBits: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }

    /// Creates the default options.
    public init() {}
}
