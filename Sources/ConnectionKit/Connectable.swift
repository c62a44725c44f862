/// A connection to a server, whose calls block. One thread at a time may use it.
public protocol Connectable: AnyObject, SendableMetatype {
    /// Ends a wait inside a call, which then gives up its work.
    var wake: Wake { get }

    /// Returns, without waiting, whether work can begin; false once the server has closed the
    /// connection.
    func isUsable() -> Bool

    /// Closes the connection. No call may follow.
    func close()

    /// Returns whether connecting again may succeed after an error: for example if the server
    /// restarts, and not if the password is wrong.
    static func mayPass(_ error: any Error) -> Bool
}
