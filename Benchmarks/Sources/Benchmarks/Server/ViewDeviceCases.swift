import CLoad
import Foundation
import Martlet
import MartletEmbedded
import MartletModel
import MartletRules
import MartletServer
import MartletServerCore

/// Devices of people who see a part, over a server on a file in a process of its own.
enum ViewDeviceCases {
    private static let moved = 10_000
    private static let samples = 5

    @Sendable static func run() async throws {
        try await move()
        try await fresh(
            club: ViewClub(teams: 10, playersPerTeam: 10_000, people: 0), "100000, no policies")
        try await fresh(
            club: ViewClub(teams: 100, playersPerTeam: 10_000, people: 0), "100000 of 1000000",
            rules: ViewClub.rules)
    }

    /// A folder with a club, and a server on it.
    private final class Served {
        let folder: BenchmarkFolder
        let process: ChildProcess
        let (ann, office): (String, String)

        init(_ club: ViewClub, rules: String?, before: String = "") throws {
            let folder = try BenchmarkFolder()
            let path = folder.path(Self.file)
            try club.make(at: path)
            if !before.isEmpty, rows_execute(path, before) != 0 {
                throw BenchmarkFailure("The club's file could not be changed.")
            }
            if let rules {
                try Data(rules.utf8).write(to: folder.url.appendingPathComponent("rules"))
            }
            self.folder = folder
            let tokens = try TokenStore(directory: folder.url.path)
            ann = try tokens.create(dataSet: "league", user: "ann", now: 1).token
            office = try tokens.create(dataSet: "league", user: "olga", roles: ["office"], now: 1)
                .token
            process = try ChildProcess([ViewRole.name, folder.url.path])
        }

        private static let file = "league.sqlite"

        var path: String { folder.path(Self.file) }

        func transport(_ token: String) throws -> URLSessionTransport {
            guard let url = URL(string: "http://127.0.0.1:\(process.port)") else {
                throw BenchmarkFailure("The server has no address.")
            }
            return try URLSessionTransport(server: url, token: token)
        }

        func open(
            _ name: String, _ transport: any Transport, _ pull: PullPolicy = .onRequest,
            seeding: Seeding? = nil
        ) async throws -> MartletClient {
            var options = ClientOptions()
            options.pull = pull
            options.seeding = seeding
            return try await MartletClient.open(
                path: folder.path(name), schema: ViewClub.schema, transport: transport,
                options: options)
        }
    }

    private static func count(_ client: MartletClient) async throws -> Int64 {
        let count = try await client.read {
            try $0.rows("SELECT count(*) AS count FROM players").first?["count"]
        }
        guard case .integer(let count) = count else { return 0 }
        return count
    }

    private static func milliseconds(since start: ContinuousClock.Instant) -> Double {
        (ContinuousClock.now - start) / .milliseconds(1)
    }

    /// A membership that begins, and ends again, of a person whose device listens: 10,000 players of
    /// 20,000 move.
    private static func move() async throws {
        let served = try Served(
            ViewClub(teams: 2, playersPerTeam: moved, people: 0), rules: ViewClub.rules)
        defer { served.process.stop() }
        let office = try await served.open("office.sqlite", served.transport(served.office))
        try await office.sync()
        let live = try await served.open(
            "ann.sqlite", served.transport(served.ann), .live(pollingEvery: nil))
        live.start()
        let asked = try await served.open("ann2.sqlite", served.transport(served.ann))
        while try await live.status().connection != .live {
            try await Task.sleep(for: .milliseconds(5))
        }
        var (into, out, purges, alone): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
        for _ in 0..<samples {
            _ = try await asked.sync()
            try await office.write { try $0.insert("members", ["person": "ann", "team_id": 1]) }
            var start = ContinuousClock.now
            try await office.sync()
            while try await count(live) != moved { try await Task.sleep(for: .milliseconds(2)) }
            into.append(milliseconds(since: start))
            _ = try await asked.sync()
            try await office.write { try $0.prepare("DELETE FROM members").run([]) }
            start = ContinuousClock.now
            try await office.sync()
            while try await count(live) != 0 { try await Task.sleep(for: .milliseconds(2)) }
            out.append(milliseconds(since: start))
            // The other device purges while nothing else is at work.
            try await Task.sleep(for: .milliseconds(500))
            let used = Machine.processorSeconds
            start = ContinuousClock.now
            _ = try await asked.sync()
            purges.append(milliseconds(since: start))
            alone.append((Machine.processorSeconds - used) * 1e3)
        }
        let name = "views/\(moved) rows"
        try Measurement(
            "\(name) enter, from the membership to the listening device", unit: "ms", samples: into,
            expected: "1000"
        ).report()
        try Measurement(
            "\(name) leave, from the membership to the listening device", unit: "ms", samples: out,
            expected: "1000"
        ).report()
        try Measurement(
            "\(name) leave, one exchange with the purge", unit: "ms", samples: purges
        ).report()
        try Measurement(
            "\(name) leave, CPU of the device", unit: "ms", samples: alone, expected: "300"
        ).report()
        for client in [office, live, asked] { await client.close() }
    }

    /// A fresh device of somebody who sees 100,000 players: with rows, and with a snapshot.
    private static func fresh(club: ViewClub, _ what: String, rules: String? = nil) async throws {
        let served = try Served(
            club, rules: rules,
            before: """
                INSERT INTO members WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n \
                WHERE i < 10) SELECT i, 'ann', i FROM n
                """)
        defer { served.process.stop() }
        func device(_ name: String, _ seeding: Seeding?) async throws -> Double {
            let start = ContinuousClock.now
            let client = try await served.open(
                name, served.transport(served.ann), seeding: seeding)
            try await client.sync()
            guard try await count(client) == 100_000 else {
                throw BenchmarkFailure("The device has not its records.")
            }
            let time = milliseconds(since: start)
            await client.close()
            return time
        }
        let name = "views/\(what)"
        try Measurement(
            "\(name): to a usable store, the first of its view", unit: "ms",
            samples: [try await device("first.sqlite", nil)]
        ).report()
        var times: [Double] = []
        for sample in 0..<samples { times.append(try await device("rows\(sample).sqlite", nil)) }
        try Measurement("\(name): to a usable store, rows", unit: "ms", samples: times).report()
        let start = ContinuousClock.now
        let transport = try served.transport(served.ann)
        while try await transport.manifest() == nil {
            try await Task.sleep(for: .milliseconds(20))
        }
        try Measurement(
            "\(name): until there is a snapshot", unit: "ms", samples: [milliseconds(since: start)]
        ).report()
        times = []
        for sample in 0..<samples {
            times.append(try await device("snapshot\(sample).sqlite", .server))
        }
        try Measurement("\(name): to a usable store, a snapshot", unit: "ms", samples: times)
            .report()
        if rules != nil { try explain(served) }
    }

    /// The explanation of one record of 1,000,000.
    private static func explain(_ served: Served) throws {
        let ann = Principal(name: "t", user: "ann")
        var (times, opened): ([Double], [Double]) = ([], [])
        for sample in 0..<21 {
            let start = ContinuousClock.now
            let records = try EmbeddedRecords(path: served.path)
            let program = try RulesProgram(ViewClub.rules, schema: records.schema)
            let players = records.schema.index(of: "players") ?? 0
            let between = ContinuousClock.now
            let explanation = try RecordExplanation(
                of: .integer(Int64(1 + sample * 40_001)), type: players, for: ann, by: program,
                now: 1_800_000_000_000, in: records)
            guard !explanation.sentences.isEmpty else {
                throw BenchmarkFailure("Nothing was said.")
            }
            times.append(milliseconds(since: start))
            opened.append(milliseconds(since: between))
        }
        try Measurement(
            "views/explain one of 1000000, with opening the file", unit: "ms", samples: times,
            expected: "10"
        ).report()
        try Measurement("views/explain one of 1000000", unit: "ms", samples: opened).report()
    }
}

/// The part of the server whose people see a part: this program, as a process of its own.
enum ViewRole {
    static let name = "run-views"

    /// Serves a folder, by the rules in it, until standard input ends.
    static func run(folder: String) async throws {
        var configuration = ServerConfiguration(dataDirectory: folder, schema: ViewClub.schema)
        let rules = URL(fileURLWithPath: folder).appendingPathComponent("rules")
        configuration.rules = (try? Data(contentsOf: rules)).map { [UInt8]($0) }
        try await ServerRole.serve(configuration)
    }
}
