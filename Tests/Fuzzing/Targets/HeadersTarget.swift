import MartletModel
import MartletProtocol

@testable import HTTPKit
@testable import MartletServer

/// What the server takes from a head: token, query, range, codings, origin, upgrade.
enum HeadersTarget: FuzzTarget {
    static let name = "headers"

    private static let origins = try? OriginRule(["https://app.example.org"])

    static func check(_ input: [UInt8]) throws {
        try checkMessage(input)
        var bytes = input
        // As a connection hands it on: with the empty line at its end.
        let end = [UInt8]("\r\n\r\n".utf8)
        guard bytes.firstRange(of: end).map({ $0.upperBound == bytes.count }) == true else {
            return
        }
        let head = bytes.withUnsafeMutableBytes { bytes in
            try? HeadParser.parse(UnsafeRawBufferPointer(bytes))
        }
        guard let head else { return }
        let request = HTTPRequest(
            method: head.method, path: head.path, query: head.query, headers: head.headers)
        try checkRange(request.headers["range"])
        try checkQuery(request)
        _ = ContentCoding.acceptsGzip(request.headers["accept-encoding"])
        _ = ContentCoding.isJSON(request.headers["content-type"])
        _ = ContentCoding.request(request.headers["content-encoding"])
        _ = RequestHandler.coding(request.headers.values("accept"))
        if origins?.allows(request.headers) == true, let origin = request.headers["origin"] {
            let names = ["app.example.org", request.headers["host"]?.lowercased() ?? ""]
            try hold(
                names.contains { origin.lowercased().hasSuffix($0) },
                "only pages of the server and of the list are let in")
        }
        if let handshake = try? WebSocketHandshake(request) {
            try hold(handshake.accept.utf8.count == 28, "an upgrade is answered with a SHA-1")
        }
        if let token = RequestHandler.bearer(request) {
            try hold(
                !token.isEmpty && !token.contains { $0 <= 0x20 || $0 >= 0x7f },
                "a token has no white space and no control character")
            try hold(request.headers.lineCount("authorization") == 1, "a token stands once")
        }
    }

    private static func checkRange(_ header: String?) throws {
        for count in [0, 1, 1_000, Int64.max] {
            guard case .part(let part) = ByteRange.answer(to: header, count: count) else {
                continue
            }
            try hold(
                !part.isEmpty && part.lowerBound >= 0 && part.upperBound <= count,
                "a range lies in its file")
        }
    }

    private static func checkQuery(_ request: HTTPRequest) throws {
        for isEvents in [false, true] {
            guard let query = try? DeltaQuery(request, isEvents: isEvents) else { continue }
            try hold(query.since >= 0 && (0...60).contains(query.wait), "numbers are in range")
            for text in [query.clientID, query.dataSet, query.lineage].compactMap(\.self) {
                try hold(1...Limits.nameBytes ~= text.utf8.count, "names are not too long")
            }
        }
    }

    private static func checkMessage(_ input: [UInt8]) throws {
        guard let message = try? SocketMessage(input) else { return }
        let reply = SocketMessage.reply(message.id, "answer", [message.sync ?? [UInt8]("1".utf8)])
        var json = JSONReader(reply)
        try json.skipValue()
        try json.finish()
    }
}
