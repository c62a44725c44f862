/// A connection to a server whose calls block, confined to whoever holds it.
public protocol Connectable: AnyObject, SendableMetatype {
    /// Ends a wait inside a call, which then gives up what it was doing.
    var wake: Wake { get }

    /// Looks, without waiting, whether work can begin: false once the server has hung up.
    func isUsable() -> Bool

    /// Lets go of the server. Nothing may be called afterwards.
    func close()

    /// Whether an error of making a connection may pass by itself, so that trying again helps: a
    /// server that restarts, not a wrong password.
    static func mayPass(_ error: any Error) -> Bool
}
