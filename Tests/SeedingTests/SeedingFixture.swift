import CompressionKit
import Foundation
import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords
import Synchronization
import SystemKit

@testable import Martlet

/// A data set of 2,000 records on a server, with a snapshot of it, and a folder for devices.
final class SeedingFixture {
    static let script = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE players (
            id TEXT PRIMARY KEY, team INTEGER REFERENCES teams (id) ON DELETE CASCADE,
            note TEXT, height REAL);
        CREATE INDEX players_by_team ON players (team);
        """
    static let identity = "0123456789abcdef0123456789abcdef"

    let folder: URL
    let manifest: SnapshotManifest
    /// What travels, by the hash of the part.
    let packed: [String: [UInt8]]
    /// The files as the server made them.
    let plain: [String]

    /// - Parameter noteBytes: The random bytes of each player, which compression does not shorten.
    init(
        plan: SeedingPlan = .whole, identity: String = SeedingFixture.identity, spoil: String = "",
        noteBytes: Int = 12,
        change: (inout SnapshotManifest) -> Void = { _ in }
    ) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-seeding-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let path = folder.appendingPathComponent("server.sqlite").path
        try Self.fill(path, noteBytes)
        let store = try EmbeddedStore(
            path: path, script: Self.script, identity: identity, now: 1)
        let folder = folder
        let cut = try SnapshotMaker(store: store, plan: plan).make {
            folder.appendingPathComponent("made-\($0)").path
        }
        var packed: [String: [UInt8]] = [:]
        var parts: [SnapshotManifest.Part] = []
        for (index, part) in cut.parts.enumerated() {
            if !spoil.isEmpty { try Connection(path: part.path).execute(spoil) }
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: part.path)))
            let small = Gzip.compress(bytes)
            let hash = String(repeating: "\(index)", count: 64)
            packed[hash] = small
            parts.append(
                .init(
                    name: part.name, hash: hash, plain: Self.sum(bytes),
                    types: part.records.map { .init(name: $0.type, records: $0.count) },
                    codings: [.init(name: "gzip", sum: Self.sum(small))]))
        }
        var manifest = SnapshotManifest(
            format: 1, dataSet: cut.dataSet, revision: cut.revision, lineage: cut.lineage,
            schema: cut.schema, parts: parts)
        change(&manifest)
        self.manifest = manifest
        self.packed = packed
        plain = cut.parts.map(\.path)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    private static func fill(_ path: String, _ noteBytes: Int) throws {
        let connection = try Connection(path: path)
        try connection.execute(script)
        try connection.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                INSERT INTO teams SELECT i, 'Team ' || i FROM n;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1900)
                INSERT INTO players SELECT printf('p%05d', i), i % 100 + 1, hex(randomblob(\(noteBytes))),
                    1.5 + i / 1000.0 FROM n;
            """)
    }

    static func sum(_ bytes: [UInt8]) -> SnapshotManifest.Sum {
        var crc = CRC32()
        crc.update(bytes)
        return .init(bytes: Int64(bytes.count), crc32: crc.value)
    }

    var device: String { folder.appendingPathComponent("device.sqlite").path }

    /// The names beside the device's file that belong to it, the file's own included.
    func left() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasPrefix("device.sqlite") }.sorted()
    }

    func removeDevice() throws {
        for name in try left() {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
    }

    func source(cut: [Int64] = []) -> FakeSource {
        FakeSource(manifest: manifest, packed: packed, cuts: cut)
    }

    /// What a file holds of the two types, and where it stands.
    static func content(_ path: String, state: Bool = true) throws -> [String] {
        let connection = try Connection(path: path)
        let statement = try connection.statement(
            """
            SELECT 't', id, name, NULL FROM teams UNION ALL
            SELECT 'p', id, team || note, height FROM players UNION ALL
            SELECT 'r', n.name, r.id, r.revision FROM martlet_records AS r
                JOIN martlet_types AS n ON n.number = r.type ORDER BY 1, 2, 3
            """)
        var rows = try statement.rows { (row) throws(SQLiteError) in
            (0..<4).map { row.text($0) }.joined(separator: "|")
        }
        if state {
            rows.append(
                try connection.text(
                    """
                    SELECT group_concat(value, '|') FROM (SELECT value FROM martlet_state
                        WHERE name IN ('dataSet', 'lineage', 'revision') ORDER BY name)
                    """) ?? "")
        }
        return rows
    }

    /// What a device's file must hold.
    func expected() throws -> [String] {
        let server = try Connection(path: folder.appendingPathComponent("server.sqlite").path)
        let revisions = try server.statement(
            """
            SELECT 'r', n.name, r.id, r.revision FROM martlet_records AS r
                JOIN martlet_types AS n ON n.number = r.type WHERE NOT r.deleted
            UNION ALL SELECT 't', id, name, NULL FROM teams
            UNION ALL SELECT 'p', id, team || note, height FROM players ORDER BY 1, 2, 3
            """)
        let rows = try revisions.rows { (row) throws(SQLiteError) in
            (0..<4).map { row.text($0) }.joined(separator: "|")
        }
        return rows + ["\(manifest.dataSet)|\(manifest.lineage)|\(manifest.revision)"]
    }

    /// - Returns: The name of the device, if it has no file yet and the server may know it.
    @discardableResult
    func seed(
        from source: (any SnapshotSource)?, _ seeding: Seeding = .server,
        schema: SchemaSource = .script(SeedingFixture.script), faults: FileFaults? = nil
    ) async throws -> String? {
        var options = ClientOptions()
        // A pause after a cut has a test of its own.
        options.sleep = { _ in }
        return try await Seeder(path: device, schema: schema, options: options, faults: faults)
            .run(seeding, from: source, proof: nil)
    }
}

/// Serves a snapshot from memory, and cuts downloads where it is told to.
final class FakeSource: SnapshotSource {
    private struct State {
        /// The positions at which the next downloads end, each once; then they end well.
        var cuts: [Int64]
        var opened: [Int64] = []
        var tag = "\"one\""
        var packed: [String: [UInt8]]
        var manifests = 0
        var manifest: SnapshotManifest?
        /// The names of devices, one for each request.
        var clients: [String?] = []
        /// A name that belongs to another user; nil for none.
        var bound: String?
    }

    private let state: Mutex<State>
    private static let chunk: Int64 = 4_096

    init(manifest: SnapshotManifest?, packed: [String: [UInt8]], cuts: [Int64]) {
        state = Mutex(State(cuts: cuts, packed: packed, manifest: manifest))
    }

    /// The offsets asked for, in order.
    var opened: [Int64] { state.withLock { $0.opened } }
    var manifests: Int { state.withLock { $0.manifests } }
    /// The names of the devices that asked, one for each request.
    var clients: [String?] { state.withLock { $0.clients } }

    /// Refuses the files to a device, which belongs to another user.
    func refuse(_ client: String?) { state.withLock { $0.bound = client } }

    func set(tag: String) { state.withLock { $0.tag = tag } }

    func replace(_ manifest: SnapshotManifest?, _ packed: [String: [UInt8]]) {
        state.withLock { ($0.manifest, $0.packed) = (manifest, packed) }
    }

    func spoil(_ change: (inout [UInt8]) -> Void) {
        state.withLock { state in
            for hash in state.packed.keys { change(&state.packed[hash, default: []]) }
        }
    }

    func manifest(client: String?) async throws(TransportFailure) -> SnapshotManifest? {
        try refuseOthers(client)
        return state.withLock { state in
            state.manifests += 1
            state.clients.append(client)
            return state.manifest
        }
    }

    private func refuseOthers(_ client: String?) throws(TransportFailure) {
        guard let client, state.withLock({ $0.bound == client }) else { return }
        throw TransportFailure(
            message: "bound", status: 403,
            problem: Problem(status: 403, kind: "clientBound", detail: "bound"))
    }

    func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
    ) async throws(TransportFailure) -> SnapshotBytes {
        try refuseOthers(client)
        let (found, current, cut) = state.withLock { state in
            state.opened.append(offset)
            state.clients.append(client)
            return (
                state.packed[part.hash], state.tag,
                state.cuts.isEmpty ? nil : state.cuts.removeFirst()
            )
        }
        guard let bytes = found else {
            throw TransportFailure(
                message: "gone", status: 404,
                problem: Problem(status: 404, kind: "noSnapshotFile", detail: "gone"))
        }
        if cut == -1 { throw TransportFailure(message: "cut before the head") }
        let start = tag == current ? offset : 0
        let next = Mutex(start)
        return SnapshotBytes(offset: start, tag: current) {
            () async throws(TransportFailure) -> [UInt8]? in
            let position = next.withLock { $0 }
            let end = min(Int64(bytes.count), cut ?? .max, position + Self.chunk)
            if position >= end {
                guard cut == nil || position >= Int64(bytes.count) else {
                    throw TransportFailure(message: "cut")
                }
                return nil
            }
            next.withLock { $0 = end }
            return Array(bytes[Int(position)..<Int(end)])
        }
    }
}
