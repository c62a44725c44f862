/// Why a change set was refused. The raw value is what the wire says.
public struct RefusalReason: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Someone else changed a record since the set was made.
    public static let stale = RefusalReason(rawValue: "stale")
    /// The user may not make this change.
    public static let permission = RefusalReason(rawValue: "permission")
    /// The database refused: unique, not null, check or a missing parent.
    public static let constraint = RefusalReason(rawValue: "constraint")
    /// A temporary id that cannot be resolved, or a set this one waits for that never came.
    public static let dependency = RefusalReason(rawValue: "dependency")
    /// A type the server does not know.
    public static let unknownType = RefusalReason(rawValue: "unknownType")
    /// An attribute the server does not know.
    public static let unknownAttribute = RefusalReason(rawValue: "unknownAttribute")
    /// The set itself is not well formed.
    public static let invalid = RefusalReason(rawValue: "invalid")
    /// The server was too busy; sending again may succeed.
    public static let busy = RefusalReason(rawValue: "busy")
}
