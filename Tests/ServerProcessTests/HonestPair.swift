import Foundation
import SocketTalk
import Synchronization

/// An honest member whose sets come in the wrong order: the second of two that belong together arrives first,
/// and waits for the other.
final class HonestPair: Sendable {
    /// So many pairs in a row may fail, for whatever reason.
    private static let mostFailures = 3

    private let port: Int
    private let token: String
    private let state = Mutex((done: 0, inRow: 0, most: 0, isOver: false))

    init(port: Int, token: String) {
        (self.port, self.token) = (port, token)
    }

    func end() { state.withLock { $0.isOver = true } }

    /// What was wrong; nil if nothing was.
    var fault: String? {
        let state = state.withLock(\.self)
        if state.done == 0 { return "no set that waits for another one was accepted" }
        return state.most < Self.mostFailures
            ? nil
            : "\(state.most) sets in a row were refused while the sets came that they wait for"
    }

    /// Sends pairs until it is over. Blocks.
    func act() {
        var number = 0
        while !state.withLock(\.isOver) {
            number += 1
            send(number)
            Thread.sleep(forTimeInterval: 0.05)
        }
    }

    private func send(_ number: Int) {
        let begun = ContinuousClock.now
        guard let second = ask(2 * number + 1, after: 2 * number) else { return }
        defer { second.close() }
        Thread.sleep(forTimeInterval: 0.1)
        guard let first = ask(2 * number, after: nil) else { return }
        defer { first.close() }
        let isThere = all(first).contains("\"conflict\":false")
        // One that comes late, or is put off itself, says nothing.
        let isInTime = isThere && ContinuousClock.now - begun < .milliseconds(1_500)
        let answer = all(second)
        let isAccepted = answer.contains("\"conflict\":false")
        let isRefused = answer.contains("\"conflict\":true")
        state.withLock { state in
            if isAccepted { (state.done, state.inRow) = (state.done + 1, 0) }
            if isInTime, isRefused { state.inRow += 1 }
            state.most = max(state.most, state.inRow)
        }
    }

    private func ask(_ number: Int, after other: Int?) -> RawConnection? {
        guard let server = RawConnection(to: port) else { return nil }
        let dependency = other.map { "\"dependencyIdentifier\":\"pair-\($0)\"," } ?? ""
        let body = """
            {"clientId":"honest-pair","maxRevision":0,"changeSets":[{"identifier":"pair-\(number)",\
            "sequence":\(number),"seen":0,\(dependency)"types":["marks"],"marks":{"create":[-\(number)],\
            "update":[],"delete":[],"attributes":{"-\(number)":{"writer":98,"number":\(number),"edits":0}}}}]}
            """
        server.send(
            "POST /sync HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer \(token)\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        return server
    }

    private func all(_ server: RawConnection) -> String {
        var bytes: [UInt8] = []
        while true {
            let part = server.receive()
            if part.isEmpty { return String(decoding: bytes, as: UTF8.self) }
            bytes += part
        }
    }
}
