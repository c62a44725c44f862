internal import CLibevent

/// The part of the server that runs on the loop: the listener, the connections, and what they use.
@EventLoop
final class ServerCore {
    let options: HTTPServerOptions
    let handler: HTTPServer.Handler
    let gate: HTTPServer.Gate?
    var counters = HTTPServerCounters()
    private var room: RequestRoom
    /// The bytes of answers that have not left for their clients.
    var waitingByteCount = 0
    private(set) var tls: TLSContext?
    private(set) var isStopping = false
    private var listener: Listener?
    private var connections: [ObjectIdentifier: HTTPConnection] = [:]
    private var connectionsByAddress: [String: Int] = [:]
    private var emptied: [CheckedContinuation<Void, Never>] = []
    private var date = (seconds: 0, line: [UInt8]())

    nonisolated init(
        options: HTTPServerOptions, gate: HTTPServer.Gate?, handler: @escaping HTTPServer.Handler
    ) {
        self.options = options
        self.gate = gate
        self.handler = handler
        room = RequestRoom(options)
    }

    func start() throws(HTTPServerError) -> Int {
        guard listener == nil, !isStopping else {
            throw HTTPServerError("A server starts once; make a new one.")
        }
        if let files = options.tls {
            tls = try TLSContext(files: files)
        }
        let listener = try Listener(host: options.host, port: options.port, core: self)
        self.listener = listener
        return listener.port
    }

    /// Reads the TLS files again; see `HTTPServer.renewTLS`.
    func renewTLS() throws(HTTPServerError) {
        guard let files = options.tls, listener != nil else { return }
        tls = try TLSContext(files: files)
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

    /// Returns how many connections fit alongside other files, if fewer than `wanted`.
    nonisolated static func connections(limit: Int, wanted: Int, others: Int) -> Int? {
        guard limit >= 0 else { return nil }
        let room = max(16, limit - others)
        return room < wanted ? room : nil
    }

    /// The number of connections that fit, if they are too few; see
    /// `HTTPServer.connectionsForWantOfFiles`.
    var connectionsForWantOfFiles: Int? {
        Self.connections(
            limit: martlet_descriptor_limit(), wanted: options.maxConnections,
            others: options.otherFiles())
    }

    /// The limits on lingering refusals. A refusal lingers a moment so that the client reads it. A
    /// flood of refusals is cut short, and sooner if they take files that other connections need.
    private static let lingeringRefusals = (most: 256, ofFewFiles: 32)

    func accepted(_ socket: Int32, address: String) {
        counters.acceptedConnections += 1
        let refusal = refusal(address: address)
        let counted = refusal == nil
        if refusal != nil {
            counters.refusedConnections += 1
            let refused = connections.count - counters.openConnections
            let isShort = connectionsForWantOfFiles != nil
            let most = Self.lingeringRefusals
            guard refused < (isShort ? most.ofFewFiles : most.most) else {
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
        if counters.openConnections >= connectionsForWantOfFiles ?? options.maxConnections {
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

    /// Closes connections until the bytes that wait for clients fit into their limit. It always
    /// closes, for the party for which most bytes wait, the connection that has taken the least
    /// each second.
    /// - Parameter newest: The connection that was just written to. It stays.
    /// - Complexity: O(*n* log *n*) in the open connections if there is too much, and O(parties)
    ///   for each connection closed; else constant.
    func makeRoom(besides newest: HTTPConnection) {
        guard waitingByteCount > options.maxWaitingBytes else { return }
        let now = Clock.now()
        // The slowest connection of each party is the last.
        var parties = Dictionary(
            grouping: connections.values.filter { $0.unsentByteCount > 0 && $0 !== newest }
        ) { $0.reader }
        .mapValues { readers in
            (
                bytes: readers.reduce(0) { $0 + $1.unsentByteCount },
                readers: readers.map { (connection: $0, pace: $0.backlog.pace(now)) }.sorted {
                    ($0.pace.bytesPerSecond, $1.pace.waited)
                        > ($1.pace.bytesPerSecond, $0.pace.waited)
                }
            )
        }
        while waitingByteCount > options.maxWaitingBytes,
            let (party, held) = parties.max(by: { $0.value.bytes < $1.value.bytes }),
            let slowest = held.readers.last?.connection
        {
            parties[party]?.readers.removeLast()
            parties[party]?.bytes -= slowest.unsentByteCount
            counters.cutAnswers += 1
            slowest.close()
        }
    }

    // MARK: - Requests

    /// The parties whose shares a connection's requests count towards before a gate names one.
    func parties(address: String) -> [RequestRoom.Party] {
        options.addressesWithoutLimit.contains(address) ? [] : [.address(address)]
    }

    /// Counts more usage, or returns the reason why there is no room for it.
    /// - Parameter claimed: The length of the body, from the head. It takes no room before the
    ///   bytes arrive, but a body that does not fit now is refused at once.
    func admit(
        _ more: RequestRoom.Usage, to claim: inout RequestClaim, claimed: Int = 0
    ) -> HTTPRefusal? {
        var wanted = more
        wanted.bytes += claimed
        if let unreadyReason = room.unreadyReason(for: wanted, of: claim.parties) {
            return busy(unreadyReason)
        }
        room.take(more, for: claim.parties)
        claim.usage += more
        return nil
    }

    /// Counts a claim towards a named party's share as well.
    func admit(party: String, to claim: inout RequestClaim) -> HTTPRefusal? {
        let party = RequestRoom.Party.named(party)
        if let unreadyReason = room.unreadyReason(for: claim.usage, of: [party], isCounted: true) {
            return busy(unreadyReason)
        }
        room.share(claim.usage, with: party)
        claim.parties.append(party)
        return nil
    }

    /// Releases the bytes of a claim that have been processed.
    func release(bytes: Int, of claim: inout RequestClaim) {
        let usage = RequestRoom.Usage(bytes: bytes)
        room.giveBack(usage, of: claim.parties)
        claim.usage -= usage
    }

    func release(_ claim: RequestClaim) {
        room.giveBack(claim.usage, of: claim.parties)
    }

    private func busy(_ detail: String) -> HTTPRefusal {
        HTTPRefusal(
            status: 503, kind: "busy", detail: detail,
            retryAfterSeconds: options.retryAfterSeconds)
    }

    /// The counters, including the usage of current requests.
    var currentCounters: HTTPServerCounters {
        var counters = counters
        counters.requestsInFlight = room.total.requests
        counters.bodyBytesInFlight = room.total.bytes
        counters.waitingBytes = waitingByteCount
        counters.certificateEnd = tls?.end
        return counters
    }

    /// The `Date` header, which is rebuilt once a second.
    var dateLine: [UInt8] {
        let seconds = Clock.epochSeconds()
        if seconds != date.seconds {
            date = (seconds, [UInt8]("Date: \(Clock.httpDate(epochSeconds: seconds))\r\n".utf8))
        }
        return date.line
    }
}
