import Foundation
import SocketTalk
import Synchronization

/// Polls whose token ends while they wait: they hear nothing of what is saved afterwards. (Streams and sockets
/// may go on for 15 seconds.)
final class EndedListeners: Sendable {
    private let port: Int
    private let token: String
    private let heard = Mutex<[String]>([])

    init(port: Int, token: String) {
        (self.port, self.token) = (port, token)
    }

    private var authorization: String { "Host: h\r\nAuthorization: Bearer \(token)\r\n" }

    /// Begins to listen, in ways that chance picks; each kind is among them.
    func listen(since revision: Int64, _ chance: inout Chance) {
        let target = "GET /deltas?since=\(revision)"
        let kinds = ["", "&client=ended", "&entries=1"].map { more in
            "\(target)&wait=\(chance.roll(20...60))\(more) HTTP/1.1\r\n\(authorization)\r\n"
        }
        let more = (0..<chance.roll(0...8)).map { _ in chance.pick(kinds) }
        for request in kinds + more {
            guard let server = RawConnection(to: port) else { continue }
            server.send(request)
            Thread.detachNewThread { [self] in
                while true {
                    let part = server.receive()
                    if part.isEmpty { break }
                    let text = String(decoding: part, as: UTF8.self)
                    heard.withLock { $0.append("\(request.prefix(60)): \(text)") }
                }
                server.close()
            }
        }
    }

    /// Whether the token is good no more.
    var isEnded: Bool {
        guard let server = RawConnection(to: port) else { return false }
        defer { server.close() }
        server.send("GET /schema HTTP/1.1\r\n\(authorization)\r\n")
        return String(decoding: server.receive(), as: UTF8.self).contains(" 401 ")
    }

    /// What was heard with these words in it.
    func heard(_ words: String) -> [String] {
        heard.withLock { $0.filter { $0.contains(words) } }
    }
}
