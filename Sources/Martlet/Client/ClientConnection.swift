/// The way in which a client receives changes from the server.
public enum ClientConnection: String, Hashable, Sendable {
    /// It receives none: the client was not started, the last attempt failed, or a person must
    /// decide first.
    case offline
    /// It receives changes by exchanges: at the policy's interval, with its own changes, and when
    /// the app asks. This is also the state while something on the network delays the live
    /// connection.
    case polling
    /// It receives changes at once, over the open live connection.
    case live
}

/// The use that a client has made of the network since it was opened.
public struct ClientTraffic: Hashable, Sendable {
    /// The number of exchanges sent, whatever their outcome.
    public var exchanges = 0
    /// The number of live connections that were established.
    public var connections = 0
    /// The number of batches of changes that arrived over live connections.
    public var batches = 0
}
