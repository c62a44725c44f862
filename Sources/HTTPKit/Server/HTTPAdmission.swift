/// The decision whether the server reads a request's body, made from the head alone.
public enum HTTPAdmission: Sendable {
    /// The server reads the body.
    /// - Parameter party: The party whose share the body counts towards, such as a user; nil if only
    ///   the address counts.
    case admitted(party: String?)
    /// The server sends this answer instead, and closes the connection.
    case refused(HTTPResponse)
}
