/// The name of a setting, its type, and what it is before anyone sets it.
///
/// Declare keys once, where they are found by their leading dot:
///
/// ```swift
/// extension SettingKey<Bool> {
///     static var showsScores: Self { SettingKey("showsScores", default: true) }
/// }
/// try await settings.set(.showsScores, to: false)
/// ```
public struct SettingKey<Value: Codable & Sendable>: Sendable {
    /// 1 to 255 bytes of UTF-8 without NUL.
    public let name: String
    /// The value of a setting that was never set, or was removed.
    public let defaultValue: Value

    /// A key; nothing is stored by making one.
    public init(_ name: String, default defaultValue: Value) {
        self.name = name
        self.defaultValue = defaultValue
    }
}
