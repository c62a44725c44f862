/// The reason why the server refused a change set. The raw value is the word on the wire.
public struct RefusalReason: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Another device or program changed a record since the set was made.
    public static let stale = RefusalReason(rawValue: "stale")
    /// The user may not make this change.
    public static let permission = RefusalReason(rawValue: "permission")
    /// The database refused the change: unique, not null, check or a missing parent.
    public static let constraint = RefusalReason(rawValue: "constraint")
    /// A temporary id cannot be resolved, or the set depends on another one that never arrived.
    public static let dependency = RefusalReason(rawValue: "dependency")
    /// The server does not know the type.
    public static let unknownType = RefusalReason(rawValue: "unknownType")
    /// The server does not know the attribute.
    public static let unknownAttribute = RefusalReason(rawValue: "unknownAttribute")
    /// The set is not well-formed.
    public static let invalid = RefusalReason(rawValue: "invalid")
    /// The server was too busy; the same set may succeed later.
    public static let busy = RefusalReason(rawValue: "busy")
}
