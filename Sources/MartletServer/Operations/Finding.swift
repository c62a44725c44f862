/// A present or future fault of a storage, with the remedy.
public struct Finding: Hashable, Sendable {
    /// The severity of a finding.
    public enum Severity: String, Hashable, Sendable {
        /// Data or the service are at risk now.
        case error
        /// Everything works, but may not stay so.
        case warning
    }

    public let severity: Severity
    /// The name of the check, for programs; it does not change.
    public let check: String
    /// A sentence that says what was found.
    public let what: String
    /// A sentence that says why it matters.
    public let why: String
    /// A sentence that says what to do.
    public let fix: String

    public init(_ severity: Severity, _ check: String, what: String, why: String, fix: String) {
        self.severity = severity
        self.check = check
        self.what = what
        self.why = why
        self.fix = fix
    }
}
