/// The options of settings.
public struct SettingsOptions: Sendable {
    /// The longest time to wait for another process that is writing.
    public var busyTimeout: Duration = .seconds(10)
    /// The interval of the checks for external writes while the app observes a setting.
    public var externalWritesPeriod: Duration = .milliseconds(150)
    /// Waits for a duration; a test can replace it.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Creates the default options.
    public init() {}
}
