internal import Dispatch
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A bad line to a server on this machine, for tests and demonstrations. It is slow in both
/// directions, and cuts every connection again and again, at times that do not depend on the
/// traffic.
///
/// Devices connect to a port of the line. Calls block and use threads of the line's own.
public final class BadLine: Sendable {
    /// The speed of the line and the frequency of its cuts.
    public struct Quality: Sendable {
        /// Bytes a second in each direction, for all connections together.
        public var bytesPerSecond: Int
        /// Seconds between two cuts of all connections.
        public var secondsBetweenCuts: Double
        /// Bytes, of both directions, after which all connections are cut as well; nil for none.
        /// Such cuts do not depend on the pace of the machine.
        public var bytesBetweenCuts: Int?

        public init(
            bytesPerSecond: Int, secondsBetweenCuts: Double, bytesBetweenCuts: Int? = nil
        ) {
            self.bytesPerSecond = bytesPerSecond
            self.secondsBetweenCuts = secondsBetweenCuts
            self.bytesBetweenCuts = bytesBetweenCuts
        }
    }

    /// The bytes that the line has carried, and the number of its cuts.
    public struct Traffic: Hashable, Sendable {
        public var up = 0
        public var down = 0
        public var connections = 0
        /// The cuts that ended a connection.
        public var cuts = 0
        /// The requests that the line answered in the server's place.
        public var strays = 0
    }

    private struct State {
        var traffic = Traffic()
        /// The time at which the line can carry more, in each direction.
        var free: [ContinuousClock.Instant]
        var sockets: Set<Int32> = []
        var nextCut: ContinuousClock.Instant
        /// The bytes that the line has carried since it was last cut for their number.
        var carried = 0
        /// The number of connections to answer with a page.
        var pages = 0
        var isClosed = false
    }

    /// The port to which devices connect.
    public let port: Int
    private let socket: Int32
    private let target: Int
    private let quality: Quality
    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "bad line", attributes: .concurrent)
    private static let pieceBytes = 1_024

    /// - Parameter target: The server's port.
    public init(to target: Int, _ quality: Quality) {
        self.target = target
        self.quality = quality
        let now = ContinuousClock.now
        state = Mutex(
            State(
                free: [now, now], nextCut: now.advanced(by: .seconds(quality.secondsBetweenCuts)))
        )
        signal(SIGPIPE, SIG_IGN)
        socket = Self.stream()
        Self.setBuffers(socket, quality)
        var address = Self.address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, size) | listen(socket, 64)
                    | getsockname(socket, address, &size)
            }
        }
        precondition(code == 0, "no port for a line")
        port = Int(in_port_t(bigEndian: address.sin_port))
        queue.async { [weak self] in self?.accept() }
        queue.async { [weak self] in self?.cut() }
    }

    /// The address to give a device as its server's.
    public var address: String { "http://127.0.0.1:\(port)" }

    public var traffic: Traffic { state.withLock(\.traffic) }

    /// Answers the next connections with the login page of a Wi-Fi.
    public func answerWithPage(times: Int) {
        state.withLock { $0.pages = times }
    }

    /// Cuts all connections and stops listening.
    public func close() {
        let sockets = state.withLock { state in
            state.isClosed = true
            return state.sockets
        }
        for socket in sockets { _ = shutdown(socket, Int32(SHUT_RDWR)) }
        _ = shutdown(socket, Int32(SHUT_RDWR))
    }

    // MARK: - Connections

    private func accept() {
        while true {
            #if canImport(Glibc)
                let device = Glibc.accept(socket, nil, nil)
            #else
                let device = Darwin.accept(socket, nil, nil)
            #endif
            guard device >= 0 else {
                _ = systemClose(socket)
                return
            }
            queue.async { self.carry(device) }
        }
    }

    private func carry(_ device: Int32) {
        defer { _ = systemClose(device) }
        let isStray = state.withLock { state in
            state.traffic.connections += 1
            guard state.pages > 0 else { return false }
            state.pages -= 1
            state.traffic.strays += 1
            return true
        }
        if isStray { return answerWithPage(device) }
        let server = Self.stream()
        defer { _ = systemClose(server) }
        Self.setBuffers(server, quality)
        var address = Self.address(in_port_t(target))
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(server, $0, size) }
        }
        guard code == 0 else { return }
        let isOpen = state.withLock { state in
            guard !state.isClosed else { return false }
            state.sockets.formUnion([device, server])
            return true
        }
        guard isOpen else { return }
        let downwards = DispatchGroup()
        queue.async(group: downwards) { self.pass(from: server, to: device, way: 1) }
        pass(from: device, to: server, way: 0)
        downwards.wait()
        state.withLock { $0.sockets.subtract([device, server]) }
    }

    /// Carries bytes in one direction until the sender ends, and then ends both connections.
    private func pass(from: Int32, to: Int32, way: Int) {
        var buffer = [UInt8](repeating: 0, count: Self.pieceBytes)
        while true {
            let count = recv(from, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            wait(for: count, way)
            var start = 0
            while start < count {
                let written = buffer[start..<count].withUnsafeBytes {
                    write(to, $0.baseAddress, $0.count)
                }
                guard written > 0 else { break }
                start += written
            }
            guard start == count else { break }
            let isFull = state.withLock { state in
                if way == 0 { state.traffic.up += count } else { state.traffic.down += count }
                state.carried += count
                guard let limit = quality.bytesBetweenCuts, state.carried >= limit else {
                    return false
                }
                state.carried = 0
                return true
            }
            if isFull { cutAll() }
        }
        for socket in [from, to] { _ = shutdown(socket, Int32(SHUT_RDWR)) }
    }

    /// Waits until the line has carried the given number of bytes.
    private func wait(for count: Int, _ way: Int) {
        let seconds = Double(count) / Double(quality.bytesPerSecond)
        let end = state.withLock { state in
            let begin = max(state.free[way], .now)
            state.free[way] = begin.advanced(by: .seconds(seconds))
            return state.free[way]
        }
        Self.pause(until: end)
    }

    /// Cuts all connections, again and again.
    private func cut() {
        while true {
            let (end, isClosed) = state.withLock { ($0.nextCut, $0.isClosed) }
            if isClosed { return }
            Self.pause(until: min(end, .now.advanced(by: .milliseconds(100))))
            guard ContinuousClock.now >= end else { continue }
            state.withLock { state in
                state.nextCut = end.advanced(by: .seconds(quality.secondsBetweenCuts))
            }
            cutAll()
        }
    }

    private func cutAll() {
        let sockets = state.withLock { state in
            if !state.sockets.isEmpty { state.traffic.cuts += 1 }
            return state.sockets
        }
        for socket in sockets { _ = shutdown(socket, Int32(SHUT_RDWR)) }
    }

    private func answerWithPage(_ device: Int32) {
        var buffer = [UInt8](repeating: 0, count: Self.pieceBytes)
        _ = recv(device, &buffer, buffer.count, 0)
        let page = [UInt8](
            "<html><body>Accept our conditions to use this network.</body></html>".utf8)
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
        let all = [UInt8](head.utf8) + page
        _ = all.withUnsafeBytes { write(device, $0.baseAddress, $0.count) }
        _ = shutdown(device, Int32(SHUT_WR))
        // Bytes that are left unread would make the system discard the answer.
        while recv(device, &buffer, buffer.count, 0) > 0 {}
    }

    // MARK: - The system's calls

    private static func stream() -> Int32 {
        #if canImport(Glibc)
            Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            Darwin.socket(AF_INET, SOCK_STREAM, 0)
        #endif
    }

    private static func address(_ port: in_port_t) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return address
    }

    /// Sets small buffers, of the bytes that the line carries in a fraction of a second, so that a
    /// sender cannot hand over much more than has been carried. With smaller ones, the system's own
    /// timers would set the speed.
    private static func setBuffers(_ socket: Int32, _ quality: Quality) {
        var bytes = Int32(max(4_096, quality.bytesPerSecond / 4))
        for option in [SO_RCVBUF, SO_SNDBUF] {
            setsockopt(
                socket, SOL_SOCKET, option, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
    }

    private static func pause(until end: ContinuousClock.Instant) {
        let left = end - .now
        guard left > .zero else { return }
        let (seconds, attoseconds) = left.components
        var time = timespec(
            tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        nanosleep(&time, nil)
    }
}

/// Calls the system's `close`, whose name a method of the class has too.
private func systemClose(_ socket: Int32) -> Int32 {
    close(socket)
}
