import SystemKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A TCP client that sends exactly the bytes it is given.
///
/// Its calls block, so they run on a queue of their own: the cooperative pool belongs to the
/// handlers under test. No test waits for it for ever: it hears nothing more once the server has
/// been silent for four minutes, or it is ten minutes old, which matters only where a test fails.
package final class RawClient: Sendable {
    private let socket: Int32
    private let end = ContinuousClock.now + .seconds(600)
    private let queue = CallQueue(label: "raw client")

    /// Connects to a server on this machine.
    package init(port: Int) {
        #if canImport(Glibc)
            socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
        #endif
        signal(SIGPIPE, SIG_IGN)
        var limit = timeval(tv_sec: 240, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(
                socket, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) }
        }
        precondition(code == 0, "no connection to port \(port)")
    }

    deinit {
        close(socket)
    }

    /// Sends a text.
    package func send(_ text: String) async {
        await send([UInt8](text.utf8))
    }

    /// Sends what the other end takes; a closed connection is no fault of the client's.
    /// - Returns: Whether it took all.
    @discardableResult
    package func send(_ bytes: [UInt8]) async -> Bool {
        await run { socket in
            var start = 0
            while start < bytes.count {
                let count = bytes[start...].withUnsafeBytes {
                    write(socket, $0.baseAddress, $0.count)
                }
                guard count > 0 else { return false }
                start += count
            }
            return true
        }
    }

    /// Everything up to the end of the stream, or a reset.
    package func readAll() async -> String {
        String(decoding: await readBytes(), as: UTF8.self)
    }

    /// Everything up to the end of the stream, or a reset.
    package func readBytes() async -> [UInt8] {
        await run { socket in
            var all: [UInt8] = []
            while let part = self.part(socket) { all += part }
            return all
        }
    }

    /// Bytes until `text` has been seen `count` times, or the end of the stream.
    package func read(until text: String, count: Int = 1) async -> String {
        await run { socket in
            var bytes: [UInt8] = []
            var all = ""
            while all.occurrences(text) < count, let part = self.part(socket) {
                bytes += part
                all = String(decoding: bytes, as: UTF8.self)
            }
            return all
        }
    }

    /// Bytes until there are at least so many, or the end of the stream.
    package func read(atLeast count: Int) async -> [UInt8] {
        await run { socket in
            var all: [UInt8] = []
            while all.count < count, let part = self.part(socket) { all += part }
            return all
        }
    }

    /// Cuts the connection off.
    package func abort() async {
        await run { socket in
            _ = shutdown(socket, Int32(SHUT_RDWR))
        }
    }

    private func part(_ socket: Int32) -> [UInt8]? {
        guard ContinuousClock.now < end else { return nil }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = receive(socket, &buffer, buffer.count)
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    private func run<Result: Sendable>(
        _ body: @escaping @Sendable (Int32) -> Result
    ) async -> Result {
        await queue.run { [socket] in body(socket) }
    }
}

private func receive(_ socket: Int32, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
    recv(socket, buffer, count, 0)
}

extension String {
    /// How often `text` occurs, byte for byte: to Swift CR LF is one character, not LF.
    package func occurrences(_ text: String) -> Int {
        let all = [UInt8](utf8)
        let part = [UInt8](text.utf8)
        guard all.count >= part.count else { return 0 }
        return (0...(all.count - part.count)).count {
            all[$0..<($0 + part.count)].elementsEqual(part)
        }
    }

    /// The parts between line feeds.
    package var lines: [String] {
        utf8.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    }
}
