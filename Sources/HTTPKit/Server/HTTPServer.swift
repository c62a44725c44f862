/// An HTTP/1.1 server over libevent, plain or with TLS.
///
/// Connections live on one event-loop thread; each handler call is a task of its own on the
/// cooperative pool. A client that goes away (or closes its sending half) before the answer
/// cancels that task.
public final class HTTPServer: Sendable {
    public typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

    /// Decides, from a request without its body, whether the body is read.
    public typealias Gate = @Sendable (HTTPRequest) async -> HTTPAdmission

    private let core: ServerCore

    /// - Parameter gate: Asked before the server waits for a body that did not arrive together with
    ///   its head; nil reads every body.
    public init(
        options: HTTPServerOptions, gate: Gate? = nil, handler: @escaping Handler
    ) {
        core = ServerCore(options: options, gate: gate, handler: handler)
    }

    /// Starts listening.
    /// - Returns: The port.
    /// - Throws: When the address cannot be had, or the TLS files cannot be used.
    @discardableResult
    public func start() async throws(HTTPServerError) -> Int {
        try await core.start()
    }

    /// Reads the TLS files again. Later connections use what is in them now.
    /// - Throws: If the files cannot be used; the server then uses what it has.
    public func renewTLS() async throws(HTTPServerError) {
        try await core.renewTLS()
    }

    /// Stops accepting, lets the requests that have begun be answered, and closes.
    /// - Parameter grace: After this long what is left is cancelled and closed.
    public func stop(grace: Duration) async {
        await core.stop(grace: grace)
    }

    /// How many connections the process may have open, by the operating system's limit of open
    /// files, where that is fewer than `HTTPServerOptions.maxConnections`; nil where all fit.
    public func connectionsForWantOfFiles() async -> Int? {
        await core.connectionsForWantOfFiles
    }

    public func counters() async -> HTTPServerCounters {
        await core.currentCounters
    }
}
