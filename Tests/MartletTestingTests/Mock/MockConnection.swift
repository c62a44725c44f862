import Dispatch
import MartletTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// One request over TCP, and every byte that came back: whether the connection broke shows in them.
///
/// Its calls block, so they run on a queue of their own.
struct MockConnection {
    private static let queue = DispatchQueue(label: "mock connection", attributes: .concurrent)

    /// Sends a request and reads to the end of the connection, or until `text` was seen.
    static func exchange(
        _ port: Int, _ head: String, headers: [String] = [], body: String = "",
        until text: String? = nil
    ) async -> String {
        var lines = ["\(head) HTTP/1.1", "Host: mock"] + headers
        if text == nil { lines.append("Connection: close") }
        if !body.isEmpty {
            lines += ["Content-Type: application/json", "Content-Length: \(body.utf8.count)"]
        }
        let message = lines.joined(separator: "\r\n") + "\r\n\r\n" + body
        return await withCheckedContinuation { continuation in
            queue.async {
                continuation.resume(returning: blocking(port, [UInt8](message.utf8), until: text))
            }
        }
    }

    private static func blocking(_ port: Int, _ message: [UInt8], until text: String?) -> String {
        #if canImport(Glibc)
            let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
        #endif
        defer { close(socket) }
        signal(SIGPIPE, SIG_IGN)
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) }
        }
        guard code == 0 else { return "no connection" }
        var sent = 0
        while sent < message.count {
            let count = message[sent...].withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            sent += count
        }
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            all += buffer[..<count]
            if let text, String(decoding: all, as: UTF8.self).contains(text) { break }
        }
        return String(decoding: all, as: UTF8.self)
    }
}

/// Plays a script while `body` runs.
func playing(
    _ script: String, _ body: (MockServer, _ port: Int) async throws -> Void
) async throws {
    let server = MockServer(try MockScript(json: [UInt8](script.utf8)))
    let port = try await server.start()
    do {
        try await body(server, port)
    } catch {
        await server.stop()
        throw error
    }
    await server.stop()
}

extension String {
    /// What follows the head of an HTTP answer; the sizes of chunks are left in.
    var httpBody: String {
        let bytes = [UInt8](utf8)
        let end = [UInt8]("\r\n\r\n".utf8)
        guard let start = bytes.firstRange(of: end) else { return "" }
        return String(decoding: bytes[start.upperBound...], as: UTF8.self)
    }
}
