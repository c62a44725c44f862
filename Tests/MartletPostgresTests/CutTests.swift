import ConnectionKit
import Foundation
import MartletModel
import MartletProtocol
import OpenSSLKit
import PostgresKit
import Synchronization
import TestDatabases
import Testing
import Waiting

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Losing PostgreSQL in the middle")
struct CutTests {
    private static func requests(_ round: String) -> [String] {
        (1...3).map { device in
            let set = TestStore.set(
                "teams", create: ["-1"], #""-1":{"name":"\#(round)-\#(device)"}"#,
                identifier: "\(round)-\(device)")
            return #"{"clientId":"\#(round)-d\#(device)","maxRevision":0,"changeSets":[\#(set)]}"#
        }
    }

    private static func accepted(_ answers: [Result<SyncAnswer, Problem>]) -> [String: Revision] {
        var accepted: [String: Revision] = [:]
        for case .success(let answer) in answers {
            for set in answer.changeSets where set.conflict == false {
                if let identifier = set.identifier { accepted[identifier] = set.revision }
            }
        }
        return accepted
    }

    /// The log has no gap, no set twice, and the hash that its entries lead to.
    private static func verify(_ store: TestStore) throws {
        let log = PostgresLog(store.address, schema: store.store.schema)
        let extent = try log.extent()
        var hash = LineageHash(origin: store.store.identity)
        let entries = try log.entries(from: 1, through: .max, maxBytes: .max)
        #expect(entries.map(\.revision) == Array(1...extent.head.revision))
        for entry in entries { hash = hash.appending(entry.body, identifier: entry.identifier) }
        #expect(hash == extent.head.hash)
        let identifiers = entries.compactMap(\.identifier)
        #expect(Set(identifiers).count == identifiers.count)
    }

    @Test("at every step of a batch: nothing is lost, nothing is there twice")
    func everywhere() async throws {
        let database = try await TestDatabase.make()
        let port = try await DatabaseServers.shared().postgresPort
        let proxy = try CuttingProxy(to: port)
        try await TestDatabase.blocking { () throws in
            // In clear, so that bytes are the protocol's.
            let through = database.address.setting("host", "127.0.0.1")
                .setting("port", String(proxy.port)).setting("sslmode", "disable")
            let direct = try TestStore(
                database.address, StoreTests.script, tables: StoreTests.tables)
            proxy.plan(.init())
            let first = try TestStore(database.address, through: through)
            let opened = (up: proxy.fromClient.count, down: proxy.fromServer.count)
            #expect(Self.accepted(try first.process(Self.requests("r9999"))).count == 3)
            let ended = (up: proxy.fromClient.count, down: proxy.fromServer.count)
            var plans: [CuttingProxy.Plan] = []
            for step in 0...10 {
                plans.append(.init(fromClient: opened.up + (ended.up - opened.up) * step / 10))
                plans.append(
                    .init(fromServer: opened.down + (ended.down - opened.down) * step / 10))
            }
            // Around the commit, byte by byte.
            for back in 0..<6 { plans.append(.init(fromServer: ended.down - back)) }
            var unknown = 0
            for (index, plan) in plans.enumerated() {
                proxy.plan(.init())
                proxy.plan(plan)
                guard let store = try? TestStore(database.address, through: through) else {
                    continue
                }
                proxy.plan(.init())
                let name = "r\(1_000 + index)"
                let requests = Self.requests(name)
                let before = Self.accepted(try store.process(requests))
                let stored = try direct.rows(
                    "SELECT count(*) FROM _martlet.log WHERE identifier LIKE '\(name)-%'")
                if before.isEmpty, stored == "3" { unknown += 1 }
                var after = Self.accepted(try store.process(requests))
                // The cut may come between the batches, too.
                if after.isEmpty { after = Self.accepted(try store.process(requests)) }
                #expect(after.count == 3, "cut \(plan): \(store.fault)")
                for (identifier, revision) in before { #expect(after[identifier] == revision) }
                #expect(
                    try direct.rows("SELECT count(*) FROM teams WHERE name LIKE '\(name)-%'") == "3"
                )
            }
            #expect(unknown > 0, "no commit was left in doubt")
            try Self.verify(direct)
        }
    }

    @Test("the server is stopped at once, again and again, while sets arrive")
    func restarted() async throws {
        let servers = try await DatabaseServers.start(["--postgres"])
        let address = try PostgresAddress(servers.postgresURL)
        let goOn = Atomic(true)
        let rounds = Atomic(0)
        let work = Task {
            try await TestDatabase.blocking { () throws -> [String: Revision] in
                let store = try TestStore(
                    address, StoreTests.script, tables: StoreTests.tables)
                var known: [String: Revision] = [:]
                var round = 0
                while goOn.load(ordering: .relaxed) {
                    let requests = Self.requests("s\(round)")
                    var attempts = 0
                    var answers = Self.accepted(try store.process(requests))
                    while answers.count < 3, attempts < 1_000_000 {
                        attempts += 1
                        answers = Self.accepted(try store.process(requests))
                    }
                    known.merge(answers) { $1 }
                    round += 1
                    rounds.store(round, ordering: .relaxed)
                }
                return known
            }
        }
        for stop in 1...3 {
            try await waitUntil("sets are accepted") {
                rounds.load(ordering: .relaxed) >= 3 * stop
            }
            try await servers.order("postgres stop immediate")
            try await servers.order("postgres start")
        }
        let reached = rounds.load(ordering: .relaxed)
        try await waitUntil("sets are accepted again") {
            rounds.load(ordering: .relaxed) > reached
        }
        goOn.store(false, ordering: .relaxed)
        let known = try await work.value
        try await TestDatabase.blocking { () throws in
            let store = try TestStore(address)
            #expect(known.count >= 27)
            for (identifier, revision) in known {
                #expect(
                    try store.rows(
                        "SELECT revision FROM _martlet.log WHERE identifier = '\(identifier)'")
                        == String(revision))
            }
            #expect(
                try store.rows("SELECT count(*) FROM teams")
                    == store.rows("SELECT count(*) FROM _martlet.log"))
            try Self.verify(store)
        }
    }

    @Test("two processes take turns: no revision is missing, no update is lost")
    func interleaved() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking { () throws in
            let store = try TestStore(
                database.address, StoreTests.script, tables: StoreTests.tables)
            try store.send(TestStore.set("teams", create: ["-1"], #""-1":{"name":"Red"}"#))
        }
        let rounds = 40
        func run(_ client: String) async throws -> Int {
            try await TestDatabase.blocking { () throws in
                let store = try TestStore(database.address)
                var base: Revision = 1
                var wins: Int64 = 0
                var refused = 0
                for _ in 0..<rounds {
                    while true {
                        let set = TestStore.set(
                            "teams", update: ["1"],
                            #""1":{"revision":\#(base),"wins":\#(wins + 1)}"#)
                        let fate = try store.send(set, from: client)
                        if fate.reason == nil {
                            base = fate.revision ?? 0
                            wins += 1
                            break
                        }
                        refused += 1
                        #expect(fate.reason == .stale)
                        let entry = fate.types.first?.entries.first
                        base = entry?.revision ?? 0
                        if case .integer(let number)? = entry?.attributes["wins"] { wins = number }
                    }
                }
                return refused
            }
        }
        async let one = run("one")
        async let two = run("two")
        _ = try await (one, two)
        try await TestDatabase.blocking { () throws in
            let store = try TestStore(database.address)
            #expect(try store.rows("SELECT wins FROM teams") == String(2 * rounds))
            try Self.verify(store)
        }
    }
}
