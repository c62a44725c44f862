internal import Foundation
internal import Martlet
internal import MartletDevice
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import MartletStore
internal import SQLiteKit

/// A check that finds and repairs a few of many rows, with the server in this process.
enum RepairedRows {
    static let name = "find and repair 10 of 10,000 rows"

    private static let schema = """
        CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT NOT NULL, shirt INTEGER);
        """

    /// The steps are the server's.
    static func counts(in folder: URL) async throws -> Counts {
        let server = try ComparingServer(folder: folder, schema: schema)
        for set in 0..<10 { try await server.fill(set * 1_000..<(set + 1) * 1_000) }
        let path = folder.appendingPathComponent("checked.sqlite").path
        var options = ClientOptions()
        // Names of one length in every run.
        options.randomBits = { 0x8000_0000_0000_0004 }
        options.now = { 1 }
        let client = try await MartletClient.open(
            path: path, schema: schema, transport: server, options: options)
        try await client.sync()
        let connection = try Connection(path: path)
        try connection.execute(
            """
            UPDATE martlet_control SET capture = 0;
            UPDATE players SET name = 'changed' WHERE id % 1000 = 77;
            UPDATE martlet_control SET capture = 1;
            """)
        _ = await server.take()
        let report = try await client.check()
        await client.close()
        guard report.findings.count == 10 else {
            throw StoreError(.inconsistent, "\(report.findings.count) of 10 rows were found.")
        }
        return await server.take()
    }
}

/// A server that decides and compares, and counts what that costs.
private actor ComparingServer: Transport {
    private let node: DataSetNode
    private let reader: LogReader
    private var bytes = 0
    private var requests = 0

    init(folder: URL, schema: String) throws {
        let store = try EmbeddedStore(
            path: folder.appendingPathComponent("server.sqlite").path, script: schema,
            identity: "0123456789abcdef", now: 1)
        node = try DataSetNode(store: store)
        reader = LogReader(node: node, store: store)
    }

    /// Creates players.
    func fill(_ numbers: Range<Int>) throws {
        let ids = numbers.map { "-\($0 + 1)" }.joined(separator: ",")
        let attributes = numbers.map {
            #""-\#($0 + 1)":{"name":"Player \#($0)","shirt":\#($0 % 99)}"#
        }
        let set = """
            {"types":["players"],"players":{"create":[\(ids)],"update":[],"delete":[],\
            "attributes":{\(attributes.joined(separator: ","))}}}
            """
        let body = #"{"maxRevision":\#(node.head.revision),"changeSets":[\#(set)]}"#
        _ = try answer(Array(body.utf8))
    }

    /// What was counted since it was last taken.
    func take() -> Counts {
        defer { (bytes, requests) = (0, 0) }
        return Counts(
            prepared: 0, steps: reader.takeComparisonSteps(), allocations: 0, bytes: bytes,
            requests: requests)
    }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        do {
            let answer = try answer(body)
            bytes += body.count + answer.body.count
            requests += 1
            return answer
        } catch {
            throw TransportFailure(message: "\(error)")
        }
    }

    private func answer(_ body: [UInt8]) throws -> TransportAnswer {
        let request = try SyncCoder.decodeRequest(body)
        let admitted = AdmittedRequest(
            principal: Principal(name: "counter"), request: request, source: body)
        if request.changeSets.isEmpty, case .answer(let found) = reader.answer(to: admitted) {
            return TransportAnswer(status: 200, body: found.body)
        }
        switch node.process([admitted], now: 1)[0] {
        case .success(let found): return TransportAnswer(status: 200, body: found.body)
        case .failure(let problem):
            throw StoreError(.inconsistent, problem.detail)
        }
    }
}
