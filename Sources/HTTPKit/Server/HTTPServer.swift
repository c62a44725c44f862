/// An HTTP/1.1 server over libevent, plain or with TLS.
///
/// All connections run on one event-loop thread. Each call of the handler is a separate task on the
/// cooperative pool. If the client goes away (or closes its sending half) before the answer, the
/// server cancels that task.
///
/// ```swift
/// var options = HTTPServerOptions()
/// options.port = 8080
/// let server = HTTPServer(options: options) { request in
///     HTTPResponse(status: 200, text: "You asked for \(request.path).")
/// }
/// let port = try await server.start()
/// ```
public final class HTTPServer: Sendable {
    public typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

    /// A function that decides from a request without its body if the server reads the body.
    public typealias Gate = @Sendable (HTTPRequest) async -> HTTPAdmission

    private let core: ServerCore

    /// Makes a server that does not listen yet.
    /// - Parameter gate: Called before the server waits for a body that did not arrive together
    ///   with its head. If it is nil, the server reads every body.
    public init(
        options: HTTPServerOptions, gate: Gate? = nil, handler: @escaping Handler
    ) {
        core = ServerCore(options: options, gate: gate, handler: handler)
    }

    /// Starts listening.
    /// - Returns: The port.
    /// - Throws: `HTTPServerError` if the server cannot listen on the address or use the TLS files,
    ///   or has started before.
    @discardableResult
    public func start() async throws(HTTPServerError) -> Int {
        try await core.start()
    }

    /// Reads the TLS files again. Later connections use their present contents.
    /// - Throws: `HTTPServerError` if the files cannot be used. The server then continues with the
    ///   earlier contents.
    public func renewTLS() async throws(HTTPServerError) {
        try await core.renewTLS()
    }

    /// Stops accepting connections, answers the requests that have begun, and closes.
    /// - Parameter grace: The time after which the server cancels and closes the rest.
    public func stop(grace: Duration) async {
        await core.stop(grace: grace)
    }

    /// Returns the number of connections that the process can have open within the operating
    /// system's limit of open files, if that is less than `HTTPServerOptions.maxConnections`; else
    /// nil.
    public func connectionsForWantOfFiles() async -> Int? {
        await core.connectionsForWantOfFiles
    }

    public func counters() async -> HTTPServerCounters {
        await core.currentCounters
    }
}
