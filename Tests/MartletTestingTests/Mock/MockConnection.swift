import MartletTesting
import SocketTalk

/// One request over TCP, and every byte that came back: whether the connection broke shows in them.
enum MockConnection {
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
        let client = RawClient(port: port)
        await client.send(message)
        guard let text else { return await client.readAll() }
        return await client.read(until: text)
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
