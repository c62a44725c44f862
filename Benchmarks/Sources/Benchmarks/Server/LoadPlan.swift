import CLoad
import Foundation

/// Requests made beforehand, one list for each connection, and the run that sends them.
struct LoadPlan {
    /// One request's body: text, with fields for what the last answer says.
    struct Request {
        var client: String
        var head: Head
        /// The change set's members after its identifier and sequence; nil for a pull.
        var types: String?
        /// The device's change set before this one.
        var sequence: Int64 = 0
    }

    /// How far a device has come.
    struct Head {
        var revision: Int64 = 0
        /// The hash of the log there; nil before the first answer.
        var lineage: String?
    }

    /// What a run came to.
    struct Outcome {
        var seconds: Double
        /// CPU seconds of the server, and of the load itself.
        var serverSeconds: Double
        var ownSeconds: Double
        var received: Int
        /// The newest revision an answer reached, and its lineage.
        var head: Head
        /// Seconds of each request.
        var latencies: [Double]

        func latency(_ quantile: Double) -> Double {
            let sorted = latencies.sorted()
            return sorted[min(sorted.count - 1, Int(Double(sorted.count) * quantile))]
        }
    }

    private var bytes: [UInt8] = []
    private var starts: [Int] = [0]
    private var revisionOffsets: [Int] = []
    private var lineageOffsets: [Int] = []
    private let connections: Int
    private let acceptsGzip: Bool

    /// - Parameter follows: Whether each request after a connection's first names the revision its
    ///   last answer reached.
    init(_ lists: [[Request]], acceptsGzip: Bool = true, follows: Bool = true) {
        precondition(Set(lists.map(\.count)).count == 1, "lists of one length")
        connections = lists.count
        self.acceptsGzip = acceptsGzip
        for request in lists.joined() { append(request, follows: follows) }
    }

    private mutating func append(_ request: Request, follows: Bool) {
        let width = Int(load_revision_width)
        let number = String(request.head.revision)
        let padded = String(repeating: " ", count: width - number.count) + number
        let beforeRevision = "{\"clientId\":\"\(request.client)\",\"protocol\":1,\"maxRevision\":"
        var body = beforeRevision + padded
        var lineageAt: Int?
        if let lineage = request.head.lineage {
            body += ",\"lineage\":\""
            lineageAt = body.utf8.count
            body += lineage + "\""
        }
        if request.sequence > 0 { body += ",\"acknowledged\":\(request.sequence - 1)" }
        body += ",\"changeSets\":["
        if let types = request.types {
            body += """
                {"identifier":"\(request.client)-\(request.sequence)",\
                "sequence":\(request.sequence),"timestamp":"2026-11-21T09:12:44.120Z",\(types)}
                """
        }
        body += "]}"
        let encoding = acceptsGzip ? "Accept-Encoding: gzip\r\n" : ""
        let head =
            "POST /sync HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            + "Authorization: Bearer \(ServerRole.token)\r\n\(encoding)"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        let start = bytes.count + head.utf8.count
        bytes += Array(head.utf8)
        bytes += Array(body.utf8)
        starts.append(bytes.count)
        revisionOffsets.append(follows ? start + beforeRevision.utf8.count : 0)
        lineageOffsets.append(follows ? lineageAt.map { start + $0 } ?? 0 : 0)
    }

    var requestCount: Int { starts.count - 1 }

    /// Sends everything; every answer must be 200.
    func run(on server: ChildProcess) throws -> Outcome {
        var bytes = bytes
        var result = load_result()
        var latencies = [UInt64](repeating: 0, count: requestCount)
        let before = server.seconds
        let code = bytes.withUnsafeMutableBufferPointer { bytes in
            starts.withUnsafeBufferPointer { starts in
                revisionOffsets.withUnsafeBufferPointer { revisions in
                    lineageOffsets.withUnsafeBufferPointer { lineages in
                        var plan = load_plan(
                            port: server.port, connections: Int32(connections),
                            requests: Int32(requestCount / connections),
                            bytes: bytes.baseAddress, starts: starts.baseAddress,
                            revision_at: revisions.baseAddress, lineage_at: lineages.baseAddress)
                        return load_run(&plan, &result, &latencies)
                    }
                }
            }
        }
        guard code == 0 else {
            throw BenchmarkFailure("The load broke off: \(String(cString: strerror(code))).")
        }
        guard result.failures == 0 else {
            throw BenchmarkFailure(
                "\(result.failures) answers were not 200; the first was \(result.status).")
        }
        return Outcome(
            seconds: result.seconds, serverSeconds: server.seconds - before,
            ownSeconds: result.own_seconds, received: Int(result.received),
            head: Head(
                revision: result.revision,
                lineage: withUnsafeBytes(of: &result.lineage) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                }),
            latencies: latencies.map { Double($0) / 1e9 })
    }
}
