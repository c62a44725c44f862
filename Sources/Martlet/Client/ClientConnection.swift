/// Whether others' changes come by themselves, and how.
public enum ClientConnection: String, Hashable, Sendable {
    /// They do not: the client was not started, the last try failed, or a person must decide first.
    case offline
    /// With exchanges: those that the pull policy makes, those that carry own changes, and those
    /// that the app asks for. Also while something on the way holds the live connection back.
    case polling
    /// At once: the live connection is open.
    case live
}

/// How often a client used the network since it was opened.
public struct ClientTraffic: Hashable, Sendable {
    /// Requests that exchanged, whatever became of them.
    public var exchanges = 0
    /// Live connections that came about.
    public var connections = 0
    /// Batches of changes that came over them.
    public var batches = 0

    public init() {}
}
