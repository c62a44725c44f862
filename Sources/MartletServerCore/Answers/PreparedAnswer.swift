public import MartletModel
internal import MartletProtocol

/// An answer that is ready to be sent.
public struct PreparedAnswer: Sendable {
    /// The JSON, or one gzip member that holds it.
    public let body: [UInt8]
    public let isGzip: Bool
    /// True if the device takes gzip, and the body is not compressed yet and long enough to gain by
    /// it. The sender then compresses it outside the writer's thread.
    public let gainsByGzip: Bool
    /// The bytes of the JSON.
    public let plainCount: Int
    /// The revision that the device reaches with the answer.
    public let revision: Revision
    /// True if the answer was cut, so that more follows.
    public let more: Bool
    /// True if the answer has rows in place of entries.
    public var isDifference = false
    /// The number of the request's sets that were accepted now, without those accepted before.
    public var accepted = 0
    /// The number of the request's sets that an earlier request got accepted.
    public var repeated = 0
    /// The number of the request's refused sets by reason, with repeated refusals.
    public var refused: [RefusalReason: Int] = [:]
}
