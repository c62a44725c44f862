public import MartletModel
internal import MartletProtocol

/// The outcome of own work after the device met a server with another history.
public struct Rejoined: Hashable, Sendable {
    /// The newest revision that both histories are known to share.
    public let common: Revision
    /// The device's revision now, in the server's history.
    public let revision: Revision
    /// The number of own change sets that the server had accepted and has lost, or may have lost.
    /// The device sends them again.
    public let sentAgain: Int
    /// The number of own change sets that wait for a person, because the records they change are
    /// not as they were when the sets were made.
    public let parked: Int
}
