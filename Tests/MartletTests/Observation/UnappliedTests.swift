import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Synchronization
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("What does not go into the tables is told", .timeLimit(.minutes(5)))
struct UnappliedTests {
    private static let narrow = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT CHECK (body <> 'odd'));
        """

    private final class Lines: Sendable {
        let list = Mutex<[String]>([])

        func contain(_ part: String) -> Bool {
            list.withLock { $0.contains { $0.contains(part) } }
        }
    }

    @Test("a line, an event and a count for what has no place, is refused, or came before")
    func told() async throws {
        let server = try LocalServer()
        let theirs = try await TestClient(server)
        let lines = Lines()
        let ours = try await TestClient(server, script: Self.narrow) { options in
            options.log = ClientLog(minimum: .debug) { _, line in
                lines.list.withLock { $0.append(line) }
            }
        }
        let events = ours.client.events
        try await theirs.run(
            "INSERT INTO teams(id, name, city) SELECT id, 'A', 'Rome' FROM martlet_new_id")
        try await theirs.insert(Player(name: "Ann"))
        try await theirs.run("INSERT INTO notes(id, body) VALUES ('n', 'odd')")
        try await theirs.client.sync()
        try await ours.client.sync()

        let listed = try await ours.client.keptAside()
        #expect(
            listed == [
                KeptAside(type: "players", attributes: [], records: 1),
                KeptAside(type: "teams", attributes: ["city"], records: 1),
            ])
        let status = try await ours.client.status()
        #expect(status.keptAside == 2)
        #expect(status.quarantined == 1)
        #expect(lines.contain("players are kept aside"))
        #expect(lines.contain("no city"))
        #expect(lines.contain("quarantined"))
        #expect(!lines.contain("Rome") && !lines.contain("odd"))
        await ours.client.close()
        var kept: [String] = []
        var quarantined = 0
        for await event in events {
            if case .keptAside(let aside) = event { kept.append(aside.type) }
            if case .quarantined(let count) = event { quarantined += count }
        }
        #expect(Set(kept) == ["players", "teams"])
        #expect(quarantined == 1)
    }

    @Test("deltas that came before are passed over, told and counted")
    func passedOverDeltas() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let old = SyncCoder.encode(
            .batch(0, 2, [.upsert(1, "teams", "1", #"{"name":"Old"}"#)]))
        let told = world.handle(.streamed(stream, old))
        guard case .notify(.passedOver(1))? = told.actions.first else {
            throw FixtureError.changed
        }
        #expect(try world.device.store.passedOverCount == 1)
        let half = SyncCoder.encode(
            .batch(
                1, 3,
                [
                    .upsert(2, "teams", "2", #"{"name":"Old"}"#),
                    .upsert(3, "teams", "1", #"{"name":"New"}"#),
                ]))
        #expect(world.handle(.streamed(stream, half)).streamed == 3)
        #expect(try world.device.store.passedOverCount == 2)
        try world.device.reopen()
        // This is the count that the last batch's transaction stored in the file.
        #expect(try world.device.store.passedOverCount >= 1)
    }

    /// Fails the first batches, and records those that follow.
    private final class Reluctant: ReconciliationEngine {
        private let next: any ReconciliationEngine
        private let seen: Lines
        private var failures = 1

        init(_ next: any ReconciliationEngine, _ seen: Lines) {
            self.next = next
            self.seen = seen
        }

        func apply(_ batch: RemoteBatch) throws -> Reconciliation {
            seen.list.withLock {
                $0.append("\(batch.source) \(batch.reaching ?? 0) \(batch.changeSets.count)")
            }
            if failures > 0 {
                failures -= 1
                throw StoreError(.inconsistent, "Not this time.")
            }
            return try next.apply(batch)
        }
    }

    @Test("a test's own engine stands in front of the client's")
    func engine() async throws {
        let server = try LocalServer()
        let theirs = try await TestClient(server)
        try await theirs.insert(Player(name: "Ann"))
        try await theirs.client.sync()
        let seen = Lines()
        let ours = try await TestClient(server) { options in
            options.engine = { Reluctant($0, seen) }
        }
        try await ours.client.sync()
        #expect(try await ours.client.read { try $0.rows("SELECT 1 FROM players") }.count == 1)
        #expect(seen.list.withLock { $0 } == ["exchange 1 1", "exchange 1 1"])
        await ours.client.close()
    }
}
