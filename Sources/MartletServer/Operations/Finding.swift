/// Something that is wrong with a storage, or will be, and what to do.
public struct Finding: Hashable, Sendable {
    /// How bad it is.
    public enum Severity: String, Hashable, Sendable {
        /// Data or service are at risk now.
        case error
        /// All is well, but may not stay so.
        case warning
    }

    public let severity: Severity
    /// A word for programs, which does not change.
    public let check: String
    /// What was found.
    public let what: String
    /// Why it matters.
    public let why: String
    public let fix: String

    public init(_ severity: Severity, _ check: String, what: String, why: String, fix: String) {
        self.severity = severity
        self.check = check
        self.what = what
        self.why = why
        self.fix = fix
    }
}
