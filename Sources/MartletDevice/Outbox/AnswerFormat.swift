internal import MartletProtocol

/// The form that the body of an answer has.
package enum AnswerFormat {
    /// Returns whether a body has the form of an answer: an object that has its end, and this member. What
    /// another program answers has not; neither has half of an answer, if the cut is not behind an inner bracket.
    package static func hasForm(_ body: [UInt8], member: String = "maxRevision") -> Bool {
        body.first == UInt8(ascii: "{") && body.last == UInt8(ascii: "}")
            && body.contains(Array("\"\(member)\"".utf8))
    }

    /// Returns whether a body has the form of an answer, and all of it is JSON. Half of an answer has not.
    package static func isWhole(_ body: [UInt8], member: String = "maxRevision") -> Bool {
        guard hasForm(body, member: member) else { return false }
        var json = JSONReader(body)
        return (try? json.skipValue()) != nil && (try? json.finish()) != nil
    }
}
