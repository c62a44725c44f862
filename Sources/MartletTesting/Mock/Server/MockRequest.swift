internal import CompressionKit
internal import Foundation
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol

/// A request that a `MockServer` has received.
public struct MockRequest: Sendable {
    /// The number of the request, counted from 1.
    public let number: Int
    public let method: String
    /// The path without the query.
    public let path: String
    /// The items of the query, without percent-encoding.
    public let query: [String: String]
    /// The headers, with names in lower case.
    public let headers: [String: String]
    /// The inflated body; empty if there was none.
    public let body: [UInt8]
    /// The name of the step that answered it; nil if it fitted no step.
    public internal(set) var step: String?
    let endpoint: MockEndpoint
    private let document: ScriptNode?

    /// The words with which conditions of a script begin.
    static let roots: Set<String> = [
        "since", "rows", "client", "method", "path", "query", "header", "body",
    ]

    init(_ request: HTTPRequest, number: Int) {
        self.number = number
        method = request.method
        path = request.path
        var query: [String: String] = [:]
        for item in (request.query ?? "").split(separator: "&") {
            let pair = item.split(separator: "=", maxSplits: 1).map {
                String($0).removingPercentEncoding ?? String($0)
            }
            if let name = pair.first { query[name] = pair.count > 1 ? pair[1] : "" }
        }
        self.query = query
        var headers: [String: String] = [:]
        for field in request.headers.fields { headers[field.name.lowercased()] = field.value }
        self.headers = headers
        body = Self.inflated(request.body, coding: headers["content-encoding"])
        document = body.isEmpty ? nil : try? ScriptNode.read(body)
        endpoint = Self.endpoint(path: path, accept: headers["accept"])
    }

    private static func inflated(_ body: [UInt8], coding: String?) -> [UInt8] {
        guard coding?.lowercased() == "gzip" else { return body }
        let bytes = try? Gzip.inflate(
            body, limit: Limits.inflatedBytes, ratio: Limits.inflationRatio,
            ratioFloor: Limits.inflationRatioFloor)
        return bytes ?? body
    }

    private static func endpoint(path: String, accept: String?) -> MockEndpoint {
        switch path {
        case "/schema": .schema
        case "/sync": .sync
        case "/deltas": accept?.contains("text/event-stream") == true ? .stream : .poll
        case "/snapshot": .snapshot
        default: path.hasPrefix("/snapshot/") ? .snapshot : .any
        }
    }

    /// The version that the client has, by its own account; nil if it names none.
    var since: Int64? {
        switch endpoint {
        case .sync: document?["maxRevision"]?.integer
        case .stream: headers["last-event-id"].flatMap { Int64($0) } ?? number(inQuery: "since")
        case .deltas, .poll: number(inQuery: "since")
        case .schema, .snapshot, .any: nil
        }
    }

    /// Whether the client asks for current rows.
    var wantsRows: Bool { query["rows"] == "1" || document?["rows"]?.boolean == true }

    /// The name of the device; nil if the request has none.
    var client: String? { document?["clientId"]?.text ?? query["client"] }

    func number(inQuery name: String) -> Int64? { query[name].flatMap { Int64($0) } }

    /// Returns the value at a condition's path.
    func value(at path: String) -> ScriptNode? {
        let parts = path.split(separator: ".", maxSplits: 1)
        let rest = parts.count > 1 ? String(parts[1]) : ""
        switch parts.first {
        case "since": return since.map { .number($0) }
        case "rows": return Self.flag(wantsRows)
        case "client": return client.map { .text($0) }
        case "method": return .text(method)
        case "path": return .text(self.path)
        case "query":
            return query[rest].map { text in Int64(text).map { .number($0) } ?? .text(text) }
        case "header": return headers[rest.lowercased()].map { .text($0) }
        case "body": return document?.value(at: rest)
        default: return nil
        }
    }

    private static func flag(_ flag: Bool) -> ScriptNode {
        ScriptNode(
            content: .scalar(.boolean(flag)), path: "", line: 0,
            source: [UInt8](flag ? "true".utf8 : "false".utf8))
    }

    /// The request on one line of JSON. A body that is not JSON becomes a text.
    public var json: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("number", Int64(number))
        json.member("method", method)
        json.member("path", path)
        json.name("query")
        json.beginObject()
        for (name, value) in query.sorted(by: { $0.key < $1.key }) { json.member(name, value) }
        json.endObject()
        json.member("accept", headers["accept"])
        json.member("lastEventId", headers["last-event-id"])
        json.member("step", step)
        if let document {
            json.name("body")
            json.raw(document.compact)
        } else if !body.isEmpty {
            json.member("body", String(decoding: body, as: UTF8.self))
        }
        json.endObject()
        return json.bytes
    }
}
