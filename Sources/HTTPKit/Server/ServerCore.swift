internal import CLibevent

/// The server on its loop: the listener, the connections and what they use up.
@EventLoop
final class ServerCore {
    let options: HTTPServerOptions
    let handler: HTTPServer.Handler
    var counters = HTTPServerCounters()
    private(set) var tls: TLSContext?
    private(set) var isStopping = false
    private var listener: Listener?
    /// The options', or fewer for want of files.
    private var maxConnections = 0
    private var connections: [ObjectIdentifier: HTTPConnection] = [:]
    private var connectionsByAddress: [String: Int] = [:]
    private var emptied: [CheckedContinuation<Void, Never>] = []
    private var date = (seconds: 0, line: [UInt8]())

    nonisolated init(options: HTTPServerOptions, handler: @escaping HTTPServer.Handler) {
        self.options = options
        self.handler = handler
    }

    func start() throws(HTTPServerError) -> Int {
        guard listener == nil, !isStopping else {
            throw HTTPServerError("A server starts once; make a new one.")
        }
        if let files = options.tls {
            tls = try TLSContext(files: files)
        }
        maxConnections = connectionsForWantOfFiles ?? options.maxConnections
        let listener = try Listener(host: options.host, port: options.port, core: self)
        self.listener = listener
        return listener.port
    }

    func stop(grace: Duration) async {
        isStopping = true
        listener?.close()
        listener = nil
        for connection in Array(connections.values) {
            connection.serverStops()
        }
        let timer = Task { @EventLoop [self] in
            do {
                try await Task.sleep(for: grace)
            } catch {
                return
            }
            for connection in Array(connections.values) {
                connection.close()
            }
        }
        await withCheckedContinuation { continuation in
            if connections.isEmpty {
                continuation.resume()
            } else {
                emptied.append(continuation)
            }
        }
        timer.cancel()
    }

    // MARK: - Connections

    /// Files that are not connections: the data sets, their logs, the libraries' own.
    private nonisolated static let otherFiles = 256

    /// How many connections fit, where that is fewer than are wanted.
    nonisolated static func connections(limit: Int, wanted: Int) -> Int? {
        guard limit >= 0 else { return nil }
        let room = max(16, limit - otherFiles)
        return room < wanted ? room : nil
    }

    /// See `HTTPServer.connectionsForWantOfFiles`.
    var connectionsForWantOfFiles: Int? {
        Self.connections(limit: martlet_descriptor_limit(), wanted: options.maxConnections)
    }

    /// Refusals linger a moment so that the client reads them; a flood of them is cut short.
    private static let lingeringRefusals = 256

    func accepted(_ socket: Int32, address: String) {
        counters.acceptedConnections += 1
        let refusal = refusal(address: address)
        let counted = refusal == nil
        if refusal != nil {
            counters.refusedConnections += 1
            let refused = connections.count - counters.openConnections
            guard refused < Self.lingeringRefusals else {
                evutil_closesocket(socket)
                return
            }
        }
        let connection = HTTPConnection(core: self, address: address, isCounted: counted)
        guard connection.open(socket) else { return }
        connections[ObjectIdentifier(connection)] = connection
        if counted {
            counters.openConnections += 1
            connectionsByAddress[address, default: 0] += 1
        }
        if let refusal { connection.refuse(refusal) }
    }

    private func refusal(address: String) -> HTTPRefusal? {
        if counters.openConnections >= maxConnections {
            return HTTPRefusal(
                status: 503, kind: "busy", detail: "The server has no connection to spare.",
                retryAfterSeconds: options.retryAfterSeconds)
        }
        if connectionsByAddress[address, default: 0] >= options.maxConnectionsPerAddress,
            !options.addressesWithoutLimit.contains(address)
        {
            return HTTPRefusal(
                status: 429, kind: "tooManyConnections",
                detail: "Your address has \(options.maxConnectionsPerAddress) connections open.",
                retryAfterSeconds: options.retryAfterSeconds)
        }
        return nil
    }

    func closed(_ connection: HTTPConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        if connection.isCounted {
            counters.openConnections -= 1
            let count = connectionsByAddress[connection.address, default: 1] - 1
            connectionsByAddress[connection.address] = count > 0 ? count : nil
        }
        if connections.isEmpty {
            emptied.forEach { $0.resume() }
            emptied.removeAll()
        }
    }

    // MARK: - Requests

    /// Counts a request in, or says why there is no room for it.
    func admit(bodyByteCount: Int) -> HTTPRefusal? {
        guard counters.requestsInFlight < options.maxRequestsInFlight,
            counters.bodyBytesInFlight + bodyByteCount <= options.maxBodyBytesInFlight
        else {
            return HTTPRefusal(
                status: 503, kind: "busy", detail: "The server has too much to do; come back.",
                retryAfterSeconds: options.retryAfterSeconds)
        }
        counters.requestsInFlight += 1
        counters.bodyBytesInFlight += bodyByteCount
        return nil
    }

    /// Counts more body in; false when there is no room.
    func admitMore(bodyByteCount: Int) -> Bool {
        guard counters.bodyBytesInFlight + bodyByteCount <= options.maxBodyBytesInFlight else {
            return false
        }
        counters.bodyBytesInFlight += bodyByteCount
        return true
    }

    /// Counts bytes out that `admitMore` let in.
    func releaseBytes(_ count: Int) {
        counters.bodyBytesInFlight -= count
    }

    func release(bodyByteCount: Int) {
        counters.requestsInFlight -= 1
        counters.bodyBytesInFlight -= bodyByteCount
    }

    /// The `Date` header, made once a second.
    var dateLine: [UInt8] {
        let seconds = Clock.epochSeconds()
        if seconds != date.seconds {
            date = (seconds, [UInt8]("Date: \(Clock.httpDate(epochSeconds: seconds))\r\n".utf8))
        }
        return date.line
    }
}
