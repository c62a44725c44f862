import Dispatch
import Foundation
import SystemKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A TCP server on this machine that answers each connection with exactly the bytes that a test
/// gives.
package final class RawServer: Sendable {
    package let port: Int
    private let socket: Int32
    private let queue = CallQueue(label: "raw server", attributes: .concurrent)

    /// - Parameter serve: Called for each connection, on a thread that it may block. The connection
    ///   ends in good order when it returns.
    package init(_ serve: @escaping @Sendable (RawConnection) -> Void) {
        signal(SIGPIPE, SIG_IGN)
        let socket = RawConnection.makeSocket()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, size) | listen(socket, 64)
                    | getsockname(socket, address, &size)
            }
        }
        precondition(code == 0, "no port for a raw server")
        port = Int(in_port_t(bigEndian: address.sin_port))
        self.socket = socket
        // Only this loop closes the socket: the number of a closed one may be another server's by the
        // time of the next call.
        queue.queue.async {
            while true {
                let peer = RawConnection.accept(socket)
                guard peer >= 0 else {
                    #if canImport(Glibc)
                        close(socket)
                    #endif
                    return
                }
                // Dispatch has few threads, and others' calls need them.
                Thread.detachNewThread {
                    serve(RawConnection(socket: peer))
                    close(peer)
                }
            }
        }
    }

    /// Stops listening.
    package func stop() {
        // On Linux, this ends a call of accept that waits, and every later one.
        _ = shutdown(socket, Int32(SHUT_RDWR))
        #if canImport(Darwin)
            close(socket)
        #endif
    }
}

/// The server's side of a connection, or one that was made to a server. Its calls block.
package struct RawConnection: Hashable, Sendable {
    let socket: Int32

    /// Whether three quarters of the descriptors that this process may have are in use.
    package var isNearLimit: Bool {
        var limit = rlimit()
        #if canImport(Glibc)
            guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
                return true
            }
        #else
            guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return true }
        #endif
        return UInt64(socket) > UInt64(limit.rlim_cur) / 4 * 3
    }

    init(socket: Int32) {
        self.socket = socket
    }

    /// Connects to a server on this machine; nil if nobody listens. Whoever makes it closes it.
    /// - Parameter own: The address to come from, such as 127.0.0.2, on machines that have it.
    package init?(to port: Int, from own: String? = nil) {
        socket = Self.makeSocket()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        if let own {
            var local = sockaddr_in()
            local.sin_family = sa_family_t(AF_INET)
            local.sin_addr.s_addr = inet_addr(own)
            _ = withUnsafePointer(to: &local) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, size) }
            }
        }
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) }
        }
        guard code == 0 else {
            close()
            return nil
        }
    }

    /// Opens a TCP socket that no program inherits: a server that a test starts at the same time would
    /// keep it open.
    package static func makeSocket() -> Int32 {
        #if canImport(Glibc)
            Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #else
            keep(Darwin.socket(AF_INET, SOCK_STREAM, 0))
        #endif
    }

    /// Accepts the next connection, which no program inherits that is started after this; negative if
    /// the listener was shut down. Blocks.
    package static func accept(_ listener: Int32) -> Int32 {
        #if canImport(Glibc)
            keep(Glibc.accept(listener, nil, nil))
        #else
            keep(Darwin.accept(listener, nil, nil))
        #endif
    }

    private static func keep(_ socket: Int32) -> Int32 {
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        return socket
    }

    /// Waits for the next bytes; none at the end of the connection.
    package func receive() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(socket, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : []
    }

    /// Ends both directions, also for calls that wait.
    package func end() {
        _ = shutdown(socket, Int32(SHUT_RDWR))
    }

    /// Frees a connection that was made by `init(to:)`.
    package func close() {
        #if canImport(Glibc)
            _ = Glibc.close(socket)
        #else
            _ = Darwin.close(socket)
        #endif
    }

    /// Reads a request with its body, if it names a length.
    /// - Returns: The whole request, or the bytes before the end of the connection.
    package func request() -> String {
        var all: [UInt8] = []
        var wanted = Int.max
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while all.count < wanted {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            all += buffer[..<count]
            guard wanted == .max else { continue }
            let text = String(decoding: all, as: UTF8.self)
            guard let end = text.range(of: "\r\n\r\n") else { continue }
            let head = text[..<end.upperBound]
            let length = head.split(separator: "\r\n").first {
                $0.lowercased().hasPrefix("content-length:")
            }
            let body = length.flatMap { Int($0.split(separator: ":")[1].dropFirst()) } ?? 0
            wanted = head.utf8.count + body
        }
        return String(decoding: all, as: UTF8.self)
    }

    /// Sends a text.
    package func send(_ text: String) {
        send([UInt8](text.utf8))
    }

    /// Sends bytes.
    /// - Returns: Whether the other end took them.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var start = 0
        while start < bytes.count {
            let count = bytes[start...].withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
            guard count > 0 else { return false }
            start += count
        }
        return true
    }

    /// Waits until the other end has closed the connection or sent more.
    package func wait() {
        var byte: UInt8 = 0
        _ = recv(socket, &byte, 1, 0)
    }

    /// Ends the connection with a reset.
    package func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
    }
}
