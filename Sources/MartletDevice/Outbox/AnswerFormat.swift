internal import MartletProtocol

/// The format of an answer's body.
package enum AnswerFormat {
    /// Returns whether a body looks like an answer: a complete object that contains this member.
    /// The answer of another program does not; nor does half of an answer, unless it is cut
    /// directly behind an inner bracket.
    package static func hasForm(_ body: [UInt8], member: String = "maxRevision") -> Bool {
        body.first == UInt8(ascii: "{") && body.last == UInt8(ascii: "}")
            && body.contains(Array("\"\(member)\"".utf8))
    }

    /// Returns whether a body looks like an answer, and all of it is JSON. False for half of an
    /// answer.
    /// - Complexity: O(*n*) in the number of bytes.
    package static func isWhole(_ body: [UInt8], member: String = "maxRevision") -> Bool {
        guard hasForm(body, member: member) else { return false }
        var json = JSONReader(body)
        return (try? json.skipValue()) != nil && (try? json.finish()) != nil
    }
}
