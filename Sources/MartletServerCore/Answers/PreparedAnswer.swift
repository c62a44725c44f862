public import MartletModel
internal import MartletProtocol

/// An answer ready to be sent.
public struct PreparedAnswer: Sendable {
    /// The JSON, or one gzip member that holds it.
    public let body: [UInt8]
    public let isGzip: Bool
    /// Whether the device takes gzip, and the body is not compressed yet and long enough to gain by it:
    /// whoever sends it compresses it, off the writer's thread and with the fastest there is.
    public let gainsByGzip: Bool
    /// Bytes of the JSON.
    public let plainCount: Int
    /// The revision the device reaches with it.
    public let revision: Revision
    /// Whether the answer was cut.
    public let more: Bool
    /// Whether rows stand in place of entries.
    public var isDifference = false
    /// Sets of this request accepted now; not those accepted before.
    public var accepted = 0
    /// Sets of this request accepted by an earlier one.
    public var repeated = 0
    /// Why sets of this request were refused, by reason; repeated refusals too.
    public var refused: [RefusalReason: Int] = [:]
}
