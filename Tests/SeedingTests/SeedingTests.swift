import Foundation
import MartletModel
import MartletProtocol
import MartletServerCore
import MartletStore
import SQLiteKit
import Synchronization
import SystemKit
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Seeding a new device")
struct SeedingTests {
    private func kind(_ body: () async throws -> Void) async -> SyncError.Kind? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? SyncError)?.kind
        }
    }

    @Test("the file is the snapshot's, with the app's indexes and capture, at its revision")
    func takenSnapshot() async throws {
        let fixture = try SeedingFixture()
        try await fixture.seed(from: fixture.source())
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
        #expect(try fixture.left() == ["device.sqlite"])
        let connection = try Connection(path: fixture.device)
        #expect(
            try connection.integer(
                "SELECT count(*) FROM sqlite_schema WHERE name = 'players_by_team'") == 1)
        #expect(try connection.integer("PRAGMA application_id") == 0)
        #expect(
            try connection.integer(
                "SELECT count(*) FROM sqlite_schema WHERE name = 'martlet_snapshot'") == 0)
        let client = try await MartletClient.open(
            path: fixture.device, schema: SeedingFixture.script, transport: nil)
        try await client.write { context in
            try context.rows("INSERT INTO teams VALUES (-2, 'New')")
        }
        let status = try await client.status()
        #expect(status.outbox == 1 && status.revision == fixture.manifest.revision)
        #expect(status.dataSet == SeedingFixture.identity)
        await client.close()
        // With a file there nothing is fetched.
        let source = fixture.source()
        try await fixture.seed(from: source)
        #expect(source.manifests == 0)
    }

    @Test("two devices of one snapshot have names of their own")
    func namesOfSeededDevices() async throws {
        let fixture = try SeedingFixture()
        var names: Set<String> = []
        for _ in 0..<2 {
            try await fixture.seed(from: fixture.source())
            let name = try LocalStore(readingFrom: fixture.device).textState("clientID")
            names.insert(try #require(name))
            try fixture.removeDevice()
        }
        #expect(names.count == 2)
    }

    @Test("a device without a file names itself, and has that name when it has one")
    func namesInRequests() async throws {
        let fixture = try SeedingFixture()
        func name() throws -> String? {
            try LocalStore(readingFrom: fixture.device).textState("clientID")
        }
        // It is the same in the call that goes on with the download.
        let cut = fixture.source(cut: [5_000, -1, -1, -1])
        #expect(await kind { try await fixture.seed(from: cut) } == .offline)
        try await fixture.seed(from: cut)
        #expect(cut.clients.count == 6)
        let kept = try name()
        #expect(kept != nil && Set(cut.clients) == [kept])
        try fixture.removeDevice()
        // Also if rows have to be copied into the file, and if there is no snapshot in the end.
        let copied = fixture.source()
        try await fixture.seed(from: copied, schema: .script(Self.watching))
        #expect(try copied.clients == [name(), name()])
        try fixture.removeDevice()
        let gone = FakeSource(manifest: fixture.manifest, packed: [:], cuts: [])
        let left = try await fixture.seed(from: gone)
        #expect(left != nil && Set(gone.clients) == [left])
        #expect(try fixture.left() == [])
        let none = FakeSource(manifest: nil, packed: [:], cuts: [])
        var options = ClientOptions()
        options.seeding = .server
        let source = Silent(source: none)
        let client = try await MartletClient.open(
            path: fixture.device, schema: SeedingFixture.script, transport: source, options: options
        )
        #expect(none.clients == [try await client.status().clientID])
        await client.close()
    }

    /// A schema with a trigger that has to see each row.
    private static let watching =
        SeedingFixture.script + """
            CREATE TABLE sightings (team INTEGER PRIMARY KEY);
            CREATE TRIGGER sees AFTER INSERT ON teams BEGIN INSERT INTO sightings VALUES (NEW.id); END;
            """

    /// A server that answers no exchange.
    private struct Silent: Transport, SnapshotSource {
        let source: FakeSource

        func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
            throw TransportFailure(message: "no answer")
        }

        func manifest(client: String?) async throws(TransportFailure) -> SnapshotManifest? {
            try await source.manifest(client: client)
        }

        func open(
            _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
        ) async throws(TransportFailure) -> SnapshotBytes {
            try await source.open(part, from: offset, tag: tag, client: client)
        }
    }

    @Test("a download that another user began is fetched again, under another name")
    func anothersDownload() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source(cut: [5_000, -1, -1, -1])
        #expect(await kind { try await fixture.seed(from: source) } == .offline)
        let first = try #require(source.clients.last ?? nil)
        source.refuse(first)
        try await fixture.seed(from: source)
        let name = try LocalStore(readingFrom: fixture.device).textState("clientID")
        #expect(name != first && source.clients.last == name)
        #expect(source.opened.last == 0 && source.manifests == 2)
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
    }

    @Test("a download cut anywhere goes on there, and ends with the same file")
    func cutsOfDownload() async throws {
        let fixture = try SeedingFixture()
        let count = try #require(fixture.manifest.parts.first?.codings.first?.sum.bytes)
        let expected = try fixture.expected()
        var offsets: [Int64] = [-1, 0, 1, 512, 1_023, 4_095, 4_096, 4_097, 8_192]
        offsets += [count - 1_024, count - 512, count - 2, count - 1]
        for _ in 0..<100 { offsets.append(Int64.random(in: 1..<count)) }
        for offset in offsets {
            // The first call ends without the rest, the second goes on.
            let source = fixture.source(cut: [offset] + [Int64](repeating: -1, count: 3))
            let failure = await kind { try await fixture.seed(from: source) }
            #expect(failure == .offline, "cut at \(offset)")
            #expect(!FileManager.default.fileExists(atPath: fixture.device))
            try await fixture.seed(from: source)
            #expect(source.opened.last == max(offset, 0), "cut at \(offset)")
            #expect(source.manifests == 1)
            #expect(try SeedingFixture.content(fixture.device) == expected, "cut at \(offset)")
            #expect(try fixture.left() == ["device.sqlite"])
            try fixture.removeDevice()
        }
    }

    @Test("cuts that bring something are gone over in one call")
    func manyCuts() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source(cut: [100, 5_000, 5_001, 9_000, -1, 12_000])
        try await fixture.seed(from: source)
        #expect(source.opened == [0, 100, 5_000, 5_001, 9_000, 9_000, 12_000])
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
    }

    @Test("a cut that brought little is followed by a pause, one that brought much by none")
    func pauses() async throws {
        let fixture = try SeedingFixture(noteBytes: 100)
        let much: Int64 = 64 << 10
        let cuts = [100, 100 + much, 99 + 2 * much, -1]
        let source = fixture.source(cut: cuts)
        // What each pause came after.
        let paused = Mutex<[Int]>([])
        var options = ClientOptions()
        options.sleep = { pause in
            #expect(pause == .milliseconds(250))
            paused.withLock { $0.append(source.opened.count) }
        }
        try await Seeder(
            path: fixture.device, schema: .script(SeedingFixture.script), options: options
        ).run(.server, from: source, proof: nil)
        #expect(source.opened == [0] + cuts.prefix(3) + [99 + 2 * much])
        #expect(paused.withLock(\.self) == [1, 3, 4])
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
    }

    @Test("another file under the address begins again; bytes of two are never mixed")
    func changedTag() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source(cut: [5_000, -1, -1, -1])
        #expect(await kind { try await fixture.seed(from: source) } == .offline)
        source.set(tag: "\"two\"")
        try await fixture.seed(from: source)
        #expect(source.opened.last == 5_000)
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
    }

    @Test("a file that is gone from the server makes the download begin with the newest")
    func goneFileOfDownload() async throws {
        let old = try SeedingFixture()
        let new = try SeedingFixture(identity: "fedcba9876543210fedcba9876543210") { manifest in
            manifest.parts[0].hash = String(repeating: "a", count: 64)
        }
        let source = old.source(cut: [5_000, -1, -1, -1])
        #expect(await kind { try await old.seed(from: source) } == .offline)
        source.replace(
            new.manifest, [new.manifest.parts[0].hash: new.packed.values.first ?? []])
        try await old.seed(from: source)
        #expect(try SeedingFixture.content(old.device) == new.expected())
    }

    @Test("a server that announces files it does not have counts as one without a snapshot")
    func announcedOnly() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source(cut: [])
        source.replace(fixture.manifest, [:])
        try await fixture.seed(from: source)
        #expect(source.manifests == 3)
        #expect(!FileManager.default.fileExists(atPath: fixture.device))
        #expect(try fixture.left() == [])
    }

    @Test(
        "a crash at any step of the download and the installation leaves no file or the whole one")
    func crashesOfDownload() async throws {
        let fixture = try SeedingFixture()
        let expected = try fixture.expected()
        for isLasting in [true, false] {
            var step = 1
            while true {
                let countdown = Countdown(step, isLasting: isLasting)
                let source = fixture.source(cut: [5_000])
                var ended = true
                do {
                    try await fixture.seed(from: source, faults: countdown.faults)
                } catch {
                    ended = false
                    #expect((error as? SyncError)?.kind == .storage, "step \(step): \(error)")
                }
                if FileManager.default.fileExists(atPath: fixture.device) {
                    #expect(try SeedingFixture.content(fixture.device) == expected, "step \(step)")
                }
                try await fixture.seed(from: source)
                #expect(try SeedingFixture.content(fixture.device) == expected, "step \(step)")
                try fixture.removeDevice()
                if ended && !countdown.hasFailed { break }
                step += 1
            }
            #expect(step > 30, "steps were counted")
        }
    }

    @Test("a full disk is said, and what was fetched before it is kept")
    func fullDisk() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source()
        let writes = Countdown(8, isLasting: true, of: [.write])
        #expect(
            await kind { try await fixture.seed(from: source, faults: writes.faults) } == .storage)
        try await fixture.seed(from: source)
        #expect(source.opened.count == 2 && source.opened[1] > 0)
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
    }

    @Test("flipped and missing bytes are noticed, removed, and fetched anew by the next call")
    func damagedDownload() async throws {
        let fixture = try SeedingFixture()
        let count = fixture.packed.values.first?.count ?? 0
        for _ in 0..<40 {
            let source = fixture.source()
            let offset = Int.random(in: 0..<count)
            source.spoil { $0[offset] ^= UInt8(1 << Int.random(in: 0..<8)) }
            #expect(await kind { try await fixture.seed(from: source) } == .violation)
            #expect(try fixture.left().isEmpty)
            try await fixture.seed(from: fixture.source())
            #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
            try fixture.removeDevice()
        }
        let short = fixture.source()
        short.spoil { $0.removeLast(700) }
        #expect(await kind { try await fixture.seed(from: short) } == .offline)
        let long = fixture.source()
        try fixture.removeDevice()
        long.spoil { $0 += [1, 2, 3] }
        #expect(await kind { try await fixture.seed(from: long) } == .violation)
        #expect(try fixture.left().isEmpty)
    }

    @Test("a partial file that a crash has spoiled is fetched again from its beginning")
    func spoiledPartial() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source(cut: [9_000, -1, -1, -1])
        #expect(await kind { try await fixture.seed(from: source) } == .offline)
        let partial = URL(fileURLWithPath: fixture.device + "-seed.all.gz")
        var bytes = try Data(contentsOf: partial)
        bytes[4_000] ^= 1
        try bytes.write(to: partial)
        try await fixture.seed(from: source)
        #expect(source.opened.suffix(2) == [9_000, 0])
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
    }

    @Test(
        "a snapshot that is whole and lies is refused",
        arguments: [
            "CREATE TRIGGER t AFTER INSERT ON teams BEGIN DELETE FROM players; END",
            "DELETE FROM teams WHERE id = 7",
            "UPDATE teams SET name = 'Another' WHERE id = 7",
            "UPDATE martlet_snapshot SET value = 'another' WHERE name = 'dataSet'",
            "UPDATE martlet_snapshot SET value = 99999999 WHERE name = 'revision'",
            "PRAGMA application_id = 0",
        ])
    func hostile(spoil: String) async throws {
        let fixture = try SeedingFixture(spoil: spoil)
        #expect(await kind { try await fixture.seed(from: fixture.source()) } == .violation)
        #expect(try fixture.left().isEmpty)
    }

    @Test("a small file that inflates without end is stopped at what was announced")
    func bomb() async throws {
        let fixture = try SeedingFixture(change: { $0.parts[0].plain.bytes = 8_192 })
        #expect(await kind { try await fixture.seed(from: fixture.source()) } == .violation)
        #expect(try fixture.left().isEmpty)
    }

    @Test("where the server has no snapshot, or a newer form of it, the device begins empty")
    func none() async throws {
        let fixture = try SeedingFixture(change: { $0.format = 2 })
        try await fixture.seed(from: fixture.source())
        try await fixture.seed(from: FakeSource(manifest: nil, packed: [:], cuts: []))
        try await fixture.seed(from: nil)
        #expect(try fixture.left().isEmpty)
    }
}

/// Lets file operations fail from a step on.
final class Countdown: Sendable {
    private let left: Ticks
    private let isLasting: Bool
    private let operations: Set<FileOperation>

    init(
        _ step: Int, isLasting: Bool,
        of operations: Set<FileOperation> = Set(FileOperation.allCases)
    ) {
        left = Ticks(step)
        self.isLasting = isLasting
        self.operations = operations
    }

    var hasFailed: Bool { left.value <= 0 }

    var faults: FileFaults {
        FileFaults { [left, isLasting, operations] operation in
            guard operations.contains(operation) else { return nil }
            let now = left.decrement()
            // ENOSPC.
            return now == 0 || (now < 0 && isLasting) ? 28 : nil
        }
    }
}
