package import MartletModel
internal import MartletProtocol

/// An answer that is ready to be sent.
package struct PreparedAnswer: Sendable {
    /// The JSON, or one gzip member that holds it.
    package let body: [UInt8]
    package let isGzip: Bool
    /// True if the device takes gzip, and the body is not compressed yet and long enough to gain by
    /// it. The sender then compresses it outside the writer's thread.
    package let gainsByGzip: Bool
    /// The bytes of the JSON.
    package let plainCount: Int
    /// The revision that the device reaches with the answer.
    package let revision: Revision
    /// True if the answer was cut, so that more follows.
    package let more: Bool
    /// True if the answer has rows in place of entries.
    package var isDifference = false
    /// The view for which it was made.
    package var view = AnsweredView()
    /// The number of the request's sets that were accepted now, without those accepted before.
    package var accepted = 0
    /// The number of the request's sets that an earlier request got accepted.
    package var repeated = 0
    /// The number of the request's refused sets by reason, with repeated refusals.
    package var refused: [RefusalReason: Int] = [:]
}

/// The view for which an answer was made.
package struct AnsweredView: Hashable, Sendable {
    package let number: Int64
    /// The revision since which a record may have left the view.
    package let revision: Revision

    package init(number: Int64 = View.everything, revision: Revision = 0) {
        (self.number, self.revision) = (number, revision)
    }
}
