/// The name of a setting, its type, and its default value.
///
/// Declare keys once, as static members, so that calls can name them after a dot:
///
/// ```swift
/// extension SettingKey<Bool> {
///     static var showsScores: Self { SettingKey("showsScores", default: true) }
/// }
/// try await settings.set(.showsScores, to: false)
/// ```
public struct SettingKey<Value: Codable & Sendable>: Sendable {
    /// The setting's name: 1 to 255 bytes of UTF-8 without NUL.
    public let name: String
    /// The value of a setting that was never set, or was removed.
    public let defaultValue: Value

    /// Creates a key. This stores nothing.
    public init(_ name: String, default defaultValue: Value) {
        self.name = name
        self.defaultValue = defaultValue
    }
}
