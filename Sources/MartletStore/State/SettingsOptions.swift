/// How settings are opened.
public struct SettingsOptions: Sendable {
    /// How long to wait for another process that is writing.
    public var busyTimeout: Duration = .seconds(10)
    /// How often to look whether another process has written, while anyone observes.
    public var externalWritesPeriod: Duration = .milliseconds(150)
    /// Waits; a test gives its own.
    public var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// As an app needs them.
    public init() {}
}
