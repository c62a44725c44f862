import Foundation
import Martlet
import MartletModel
import MartletProtocol
import SQLiteKit
import Testing

@testable import MartletDemo

/// The demo's checks, on what they must not let pass.
@Suite("The demo's account")
struct DemoAuditTests {
    /// A server whose log is given.
    private struct FixedLog: Transport {
        let answers: [SyncAnswer]

        func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
            do {
                let request = try SyncCoder.decodeRequest(body)
                let answer = answers.first {
                    $0.changeSets.first?.revision == request.maxRevision + 1
                }
                return TransportAnswer(
                    status: 200,
                    body: try SyncCoder.encode(
                        answer ?? SyncAnswer(maxRevision: request.maxRevision, more: true)))
            } catch {
                throw TransportFailure(message: error.message)
            }
        }
    }

    private func entry(_ revision: Revision, _ texts: [String]) -> ChangeSet {
        let entries = texts.enumerated().map { index, text in
            RecordEntry(
                id: .integer(Int64(index + 1)), revision: revision,
                attributes: Attributes(names: ["name"], values: [.text(text)]))
        }
        var set = ChangeSet(types: [
            TypeChanges(name: "teams", update: entries.map(\.id), entries: entries)
        ])
        set.revision = revision
        return set
    }

    @Test("counts the entries a mark stands in, over several answers, and sees gaps")
    func log() async throws {
        let whole = FixedLog(answers: [
            SyncAnswer(
                maxRevision: 2, more: true,
                changeSets: [entry(1, ["mark-1-1;", "x mark-1-1;"]), entry(2, ["mark-1-2;"])]),
            SyncAnswer(maxRevision: 3, changeSets: [entry(3, ["mark-1-1;", "mark-1-3"])]),
        ])
        let audit = try await LogAudit(whole)
        #expect(audit.entries == ["mark-1-1;": 2, "mark-1-2;": 1])
        #expect(audit.revision == 3)
        #expect(audit.gaps == 0)
        let holed = FixedLog(answers: [
            SyncAnswer(maxRevision: 3, changeSets: [entry(1, []), entry(3, [])])
        ])
        #expect(try await LogAudit(holed).gaps == 1)
        await #expect(throws: DemoError.self) { try await LogAudit(FixedLog(answers: [])) }
    }

    @Test("a replica with another value, a missing or an extra record is not equal")
    func replicas() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-audit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let schema = Schema(types: [
            EntityType(
                name: "te\"ams", key: "id", keyKind: .integer,
                attributes: [Attribute(name: "name", kind: .text)])
        ])
        func file(_ name: String, _ rows: String) throws -> String {
            let path = folder.appendingPathComponent(name).path
            let connection = try Connection(path: path)
            try connection.execute(
                "CREATE TABLE \"te\"\"ams\" (id INTEGER PRIMARY KEY, name TEXT); \(rows)")
            return path
        }
        let insert = "INSERT INTO \"te\"\"ams\" VALUES "
        let comparison = ReplicaComparison(
            schema: schema, serverPath: try file("server", insert + "(1, 'a'), (2, NULL);"))
        #expect(try comparison.recordCount() == 2)
        let cases = [
            ("equal", "(1, 'a'), (2, NULL);", true), ("value", "(1, 'b'), (2, NULL);", false),
            ("null", "(1, 'a'), (2, '');", false), ("missing", "(1, 'a');", false),
            ("extra", "(1, 'a'), (2, NULL), (3, 'c');", false),
            ("swapped", "(1, 'a'), (3, NULL);", false),
        ]
        for (name, rows, isEqual) in cases {
            let differences = try comparison.differences(try file(name, insert + rows))
            #expect(differences.isEmpty == isEqual, "\(name)")
        }
    }

    @Test("a report is good only when every check is")
    func report() {
        var good = DemoReport()
        good.account.replicas = 2
        good.account.equalReplicas = 2
        good.account.conflicts = 3
        good.account.kept = 3
        good.join.began = 1
        good.join.isSnapshotDue = true
        #expect(good.isGood)
        let spoil: [(inout DemoReport) -> Void] = [
            { $0.account.lost = 1 }, { $0.account.doubled = 1 }, { $0.account.gaps = 1 },
            { $0.account.kept = 2 },
            { $0.account.equalReplicas = 1 }, { $0.account.findings = ["x"] },
            { $0.join.began = 0 },
            { $0.live.withinSecond = LiveFigures.leastWithinSecond - 0.001 },
            {
                $0.account.replicas = 0
                $0.account.equalReplicas = 0
            },
        ]
        for change in spoil {
            var bad = good
            change(&bad)
            #expect(!bad.isGood)
        }
        good.live.withinSecond = 0
        good.judgesLive = false
        #expect(good.isGood)
    }

    @Test(
        "views are good only if nothing leaked, all confirmed, and something was hidden and moved")
    func views() {
        var good = ViewFigures()
        (good.devices, good.confirmed, good.hidden, good.moves) = (2, 2, 10, 300)
        #expect(good.isGood)
        let spoil: [(inout ViewFigures) -> Void] = [
            { $0.leaks = 1 }, { $0.confirmed = 1 }, { $0.hidden = 0 }, { $0.moves = 0 },
        ]
        for change in spoil {
            var bad = good
            change(&bad)
            #expect(!bad.isGood)
            var report = DemoReport()
            (report.account.replicas, report.account.equalReplicas, report.join.began) = (1, 1, 1)
            report.views = good
            #expect(report.isGood)
            report.views = bad
            #expect(!report.isGood)
        }
    }

    @Test("canaries are found in texts that have several, and in other bytes")
    func canaries() {
        #expect(
            Canary.all(in: "mark-a-1-2; Vos canary-players-7;") == [
                "mark-a-1-2;", "canary-players-7;",
            ])
        #expect(Canary.all(in: "canary-x;canary-y;; canary-z") == ["canary-x;", "canary-y;"])
        #expect(Canary.all(in: "made with mark-a-1-2;") == ["mark-a-1-2;"])
        #expect(Canary.all(in: "canary-" + String(repeating: "x", count: 90) + ";").isEmpty)
        #expect(Canary.all(in: [0, 255] + Array("canary-a-1;".utf8) + [255]) == ["canary-a-1;"])
    }

    @Test("a coach sees the rows that a condition in SQL tells, and a replica has no others")
    func coaches() throws {
        let roles = DemoRoles(devices: 13, coaches: 2)
        #expect((1...14).filter { roles.coach(of: $0) != nil } == [3, 8, 13])
        #expect(roles.people == ["coach-1", "coach-2"])
        #expect(roles.coach(of: 13) == "coach-1")
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-coaches-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func file(_ name: String, _ rows: String) throws -> String {
            let path = folder.appendingPathComponent(name).path
            try Connection(path: path).execute(
                """
                CREATE TABLE memberships (id INTEGER PRIMARY KEY, person TEXT, club_id INTEGER);
                CREATE TABLE players (id INTEGER PRIMARY KEY, club_id INTEGER, last_name TEXT); \(rows)
                """)
            return path
        }
        let server = try file(
            "server",
            """
            INSERT INTO memberships VALUES (1, 'coach-1', 5), (2, 'coach-2', 6);
            INSERT INTO players VALUES (1, 5, 'a'), (2, 6, 'b'), (3, NULL, 'c');
            """)
        let players = EntityType(
            name: "players", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "club_id", kind: .integer),
                Attribute(name: "last_name", kind: .text),
            ])
        let comparison = ReplicaComparison(schema: Schema(types: [players]), serverPath: server)
        let conditions = OrganisationRules.conditions(of: "coach-1")
        let texts = try comparison.texts(players, try #require(conditions["players"]))
        #expect(texts.met == ["a"] && texts.unmet == ["b", "c"])
        let equal = try file("equal", "INSERT INTO players VALUES (1, 5, 'a');")
        #expect(try comparison.differences(equal, within: conditions).isEmpty)
        #expect(try !comparison.differences(equal).isEmpty)
        let more = try file("more", "INSERT INTO players VALUES (1, 5, 'a'), (2, 6, 'b');")
        #expect(try !comparison.differences(more, within: conditions).isEmpty)
    }

    @Test("the network loses the share it is told to, the same for the same seed")
    func network() {
        func fates(_ seed: UInt64) -> [NetworkFaults.Fate] {
            let faults = NetworkFaults(seed: seed, lostAnswers: 20, lostRequests: 5, cutStreams: 10)
            return (0..<2_000).map { _ in faults.next() }
        }
        #expect(fates(1) == fates(1))
        #expect(fates(1) != fates(2))
        #expect((350...450).contains(fates(3).count { $0 == .answerLost }))
        #expect((60...140).contains(fates(3).count { $0 == .requestLost }))
    }

    @Test("edits are planned for types with a free text, and records made where all can be given")
    func planOfEdits() {
        let schema = Schema(types: [
            EntityType(
                name: "years", key: "id", keyKind: .integer,
                attributes: [Attribute(name: "year", kind: .integer, isRequired: true)],
                uniques: [["year"]]),
            EntityType(
                name: "teams", key: "id", keyKind: .integer,
                attributes: [
                    Attribute(name: "slug", kind: .text, isRequired: true),
                    Attribute(name: "name", kind: .text),
                    Attribute(name: "year_id", kind: .integer, isRequired: true),
                ],
                references: [Reference(attribute: "year_id", target: "years", onDelete: .cascade)],
                uniques: [["slug"]]),
            EntityType(
                name: "codes", key: "code", keyKind: .text,
                attributes: [Attribute(name: "label", kind: .text)]),
        ])
        let plan = EditPlan(schema)
        #expect(plan.columns.map(\.type) == ["teams", "codes"])
        #expect(plan.columns.map(\.attribute) == ["name", "label"])
        #expect(plan.kinds.map(\.column.type) == ["teams"])
        #expect(
            plan.kinds.first?.required == [.mark("slug"), .reference("year_id", target: "years")])
    }
}
