public import MartletModel
internal import MartletProtocol

/// What became of own work when the server was met again with another history.
public struct Rejoined: Hashable, Sendable {
    /// The newest revision of which it is known that both histories share it.
    public let common: Revision
    /// The revision the device has now, in the server's history.
    public let revision: Revision
    /// Own change sets the server had taken and has lost, or may have; they are sent again.
    public let sentAgain: Int
    /// Own change sets that wait for a person: what they change is not what they were made on.
    public let parked: Int
}
