/// What is wrong with a script, where, and what to write instead.
public struct MockScriptError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line of the script, from 1.
    public let line: Int
    /// The member it is about, such as `steps[2].then.cut`; empty for the script as a whole.
    public let member: String
    /// What was found, and what to write.
    public let message: String

    public var description: String {
        "line \(line)\(member.isEmpty ? "" : ", \(member)"): \(message)"
    }
}
