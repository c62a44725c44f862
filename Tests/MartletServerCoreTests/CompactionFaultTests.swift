import MartletModel
import MartletProtocol
import SQLiteFaults
import SQLiteKit
import SetTexts
import Testing

@testable import MartletServerCore

/// Sets and steps of compaction by turns, on a disk that fails.
private struct CompactingRun {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
        """
    /// More than a page, so that emptying frees some.
    static let long = String(repeating: "long ", count: 2_000)

    /// What is done: a device's acknowledgement and set, or a step that keeps so many entries.
    enum Deed {
        case send(String, acknowledged: Int, SetText)
        case compact(keeping: Int64)
    }

    static let deeds: [Deed] = [
        .send(
            "d1", acknowledged: 0, SetText("a1", sequence: 1).create("teams", "-1", #""name":"A""#)),
        .send(
            "d2", acknowledged: 0,
            SetText("b1", sequence: 1).create("notes", "n", #""body":"\#(long)""#)),
        .send(
            "d1", acknowledged: 1,
            SetText("a2", sequence: 2).update("teams", "1", #""revision":1,"name":"B""#)),
        .compact(keeping: 1),
        .send(
            "d2", acknowledged: 1,
            SetText("b2", sequence: 2).update("notes", "n", #""revision":2,"body":"x""#)),
        .compact(keeping: 2),
        .compact(keeping: 1),
        .send("d1", acknowledged: 2, SetText("a3", sequence: 3).delete("teams", "1")),
        .compact(keeping: 0),
    ]

    let server: FaultyServer
    var operations = 0

    init(name: String, seed: UInt64) {
        server = FaultyServer(schema: Self.schema, name: name, seed: seed, cacheBytes: 0)
    }

    /// Does everything, once more after every fault; gives the final state as text.
    mutating func run() throws -> String {
        for deed in Self.deeds { try server.insist { try Self.attempt(deed, $0) } }
        operations = server.disk.operationCount
        return try state()
    }

    private static func attempt(_ deed: Deed, _ node: DataSetNode) throws -> Bool {
        switch deed {
        case .compact(let newest):
            while true {
                let step = node.compact(keeping: newest, entries: 1)
                if node.takeFault() != nil { return false }
                if step.isDone { return true }
            }
        case .send(let client, let acknowledged, let set):
            let bytes = Array(
                """
                {"clientId":"\(client)","maxRevision":0,"acknowledged":\(acknowledged),\
                "changeSets":[\(set)]}
                """.utf8)
            let request = AdmittedRequest(
                principal: .ada, request: try SyncCoder.decodeRequest(bytes),
                source: bytes)
            guard case .success(let answer) = node.process([request], now: 7)[0] else {
                return false
            }
            let sets = try SyncCoder.decodeAnswer(answer.body).changeSets
            // Whatever happened before, the device is told of its own set in full.
            let own = try #require(sets.last { $0.conflict == false })
            #expect(own.recordCount == 1)
            #expect(sets.first?.isDifference == (node.feed.floor > 0))
            return true
        }
    }

    private func state() throws -> String {
        let connection = try server.connection()
        var lines: [String] = []
        for query in [
            "SELECT * FROM teams", "SELECT * FROM notes", "SELECT * FROM martlet_records",
            "SELECT value FROM martlet_meta WHERE key = 'floor'",
            "SELECT revision, identifier, hex(content), hex(hash), length(body), temporaries "
                + "FROM martlet_log",
        ] {
            let statement = try connection.prepare(query)
            while try statement.step() {
                lines.append(
                    (0..<statement.columnCount).map { statement.text($0) }.joined(separator: "|"))
            }
        }
        return lines.joined(separator: "\n")
    }
}

@Suite("Compaction on a failing disk", .serialized)
struct CompactionFaultTests {
    @Test(
        "whatever operation fails, a step has happened or has not, and ends the same",
        arguments: [FaultDisk.Failure.ioError, .full, .crash], [false, true])
    func everyOperationOfCompaction(failure: FaultDisk.Failure, lasting: Bool) throws {
        var reference = CompactingRun(name: "compact-\(failure)-\(lasting)", seed: 1)
        let expected = try reference.run()
        let log = expected.split(separator: "\n").suffix(5).map {
            $0.split(separator: "|", omittingEmptySubsequences: false)
        }
        // The last sets of both devices are not acknowledged.
        #expect(log.map { $0[4] != "0" } == [false, false, false, true, true])
        #expect(reference.operations > 40)
        var faults = 0
        for operation in 1...reference.operations {
            var run = CompactingRun(
                name: "compact-\(failure)-\(lasting)-\(operation)", seed: UInt64(operation))
            run.server.disk.failAfter(operations: operation, kind: failure, lasting: lasting)
            #expect(try run.run() == expected, "operation \(operation)")
            faults += run.server.faults
        }
        #expect(faults > reference.operations / 3)
    }
}
