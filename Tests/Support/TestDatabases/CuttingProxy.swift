internal import Foundation
internal import SocketTalk
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// Stands between clients and a server on the loopback interface, keeps what passes, and cuts.
package final class CuttingProxy: Sendable {
    /// When a connection ends, and how. It counts for connections made from then on.
    package struct Plan: Sendable {
        /// Bytes that pass to the server; what comes behind them does not.
        package var fromClient: Int
        /// Bytes that pass to the client.
        package var fromServer: Int
        /// Whether both sides are left connected, and hear nothing any more.
        package var isSilent: Bool

        package init(fromClient: Int = .max, fromServer: Int = .max, isSilent: Bool = false) {
            self.fromClient = fromClient
            self.fromServer = fromServer
            self.isSilent = isSilent
        }
    }

    private struct State {
        var plan: Plan
        var fromClient: [UInt8] = []
        var fromServer: [UInt8] = []
        var connections = 0
        var isClosed = false
    }

    package let port: Int
    private let target: Int
    private let listener: Int32
    private let state: Mutex<State>

    /// - Parameter target: The server's port.
    package init(to target: Int, _ plan: Plan = Plan()) throws {
        signal(SIGPIPE, SIG_IGN)
        self.target = target
        state = Mutex(State(plan: plan))
        listener = RawConnection.makeSocket()
        guard unsafe Self.withAddress(0, { [listener] in unsafe bind(listener, $0, $1) }) == 0,
            listen(listener, 16) == 0
        else { throw DatabaseServers.Failure(description: "there is no port for a proxy") }
        port = Self.port(of: listener)
        let ear = Ear(
            listener: listener, accepted: { [weak self] in self?.serve($0) ?? Self.drop($0) })
        Thread.detachNewThread { ear.accept() }
    }

    deinit {
        // Ends the thread that accepts.
        shutdown(listener, Int32(SHUT_RDWR))
    }

    /// Sets what happens to connections from now on, and forgets what passed.
    package func plan(_ plan: Plan) {
        state.withLock { $0 = State(plan: plan) }
    }

    /// All that clients sent since the last plan, cut or not.
    package var fromClient: [UInt8] { state.withLock { $0.fromClient } }

    /// All that the server sent.
    package var fromServer: [UInt8] { state.withLock { $0.fromServer } }

    /// Connections made since the last plan.
    package var connections: Int { state.withLock { $0.connections } }

    private func serve(_ client: Int32) {
        let plan = state.withLock { state in
            state.connections += 1
            return state.plan
        }
        let server = RawConnection.makeSocket()
        guard unsafe Self.withAddress(target, { unsafe connect(server, $0, $1) }) == 0 else {
            close(client)
            close(server)
            return
        }
        Thread.detachNewThread { [self] in pump(client, server, plan) }
    }

    private func pump(_ client: Int32, _ server: Int32, _ plan: Plan) {
        defer {
            close(client)
            close(server)
        }
        var up = plan.fromClient
        var down = plan.fromServer
        while true {
            var watched = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            guard unsafe poll(&watched, 2, -1) > 0 else { return }
            if watched[0].revents != 0 {
                guard let bytes = Self.receive(client) else { return }
                state.withLock { $0.fromClient += bytes }
                Self.send(server, bytes.prefix(up))
                up = max(0, up - bytes.count)
            }
            if watched[1].revents != 0 {
                guard let bytes = Self.receive(server) else { return }
                state.withLock { $0.fromServer += bytes }
                Self.send(client, bytes.prefix(down))
                down = max(0, down - bytes.count)
            }
            if up == 0 || down == 0, !plan.isSilent { return }
        }
    }

    // MARK: - Sockets

    private static func drop(_ socket: Int32) {
        close(socket)
    }

    private static func withAddress(
        _ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, size) }
        }
    }

    private static func port(of socket: Int32) -> Int {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        unsafe withUnsafeMutablePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = unsafe getsockname(socket, $0, &size)
            }
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    private static func receive(_ socket: Int32) -> [UInt8]? {
        var bytes: [UInt8] = Array(repeating: 0, count: 65_536)
        let count = unsafe read(socket, &bytes, bytes.count)
        return count > 0 ? Array(bytes.prefix(count)) : nil
    }

    private static func send(_ socket: Int32, _ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe write(socket, $0.baseAddress, $0.count)
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// Accepts connections until the listening socket is shut down.
private struct Ear: Sendable {
    let listener: Int32
    let accepted: @Sendable (Int32) -> Void

    func accept() {
        while true {
            let client = RawConnection.accept(listener)
            guard client >= 0 else { break }
            accepted(client)
        }
        close(listener)
    }
}
