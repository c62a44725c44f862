/// A mistake in a script, with its location and the remedy.
public struct MockScriptError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line of the script, from 1.
    public let line: Int
    /// The wrong member, such as `steps[2].then.cut`; empty for the script as a whole.
    public let member: String
    /// A sentence about the mistake and the remedy.
    public let message: String

    public var description: String {
        "line \(line)\(member.isEmpty ? "" : ", \(member)"): \(message)"
    }
}
