/// How a database is opened.
public struct DatabaseOptions: Sendable {
    /// Reading connections.
    public var readers = 2
    /// How long to wait for another connection's lock.
    public var busyTimeout: Duration = .seconds(10)
    /// Prepared statements kept by each connection.
    public var cachedStatements = 200
    /// Whether each commit is on the disk when `write` returns (`synchronous = FULL`). Without it
    /// a power cut may take the last commits back; never half of one.
    public var isDurable = true
    /// What watches, refuses and adds to writes.
    public var hooks = WriteHooks()
    /// Hears of statements as they are run; for development.
    public var trace: StatementTrace?
    /// How often to look whether another process has written, while anyone observes.
    public var externalWritesPeriod: Duration = .milliseconds(150)
    /// Waits; a test gives its own.
    public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// A registered VFS of SQLite's; nil for the platform's. For tests, with a disk that fails.
    package var vfs: String?
    /// Evenly spread bits, for random keys.
    public var randomBits: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }

    public init() {}
}
