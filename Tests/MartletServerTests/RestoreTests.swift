import Foundation
import MartletEmbedded
import MartletModel
import MartletServerCore
import SQLiteKit
import Testing

@testable import MartletServer

@Suite("Restoring a data set's file")
struct RestoreTests {
    private static let script = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"
    private let home = TemporaryFolder()
    private var data: String { home.path + "/data" }
    private var backup: String { home.path + "/backup" }

    /// Makes a data folder whose data set has a row of this name, and a backup of it.
    private func prepare(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        let store = try EmbeddedStore(
            path: data + "/team.sqlite", script: Self.script, identity: "abc", now: 1)
        let node = try DataSetNode(store: store)
        try write(name)
        _ = node.takeExternalWrites(now: 2)
    }

    private func write(_ name: String) throws {
        try Connection(path: data + "/team.sqlite")
            .execute("DELETE FROM teams; INSERT INTO teams (name) VALUES ('\(name)')")
    }

    private func name(in path: String) throws -> String? {
        try Connection(path: path, mode: .readWrite).text("SELECT name FROM teams")
    }

    private func open(_ folder: String) throws {
        _ = try EmbeddedBacking(path: folder + "/team.sqlite", script: Self.script)
            .open(now: 3, unsendable: UnsendableRows())
    }

    private func embedded() throws -> EmbeddedBackup {
        try EmbeddedBackup(directory: data, dataSet: "team")
    }

    @Test("puts the backup in place and keeps what was there")
    func restore() throws {
        try prepare("old")
        _ = try embedded().make(at: backup, time: "2026-01-01T00:00:00Z")
        try write("new")
        #expect(throws: ServerFailure.self) {
            try embedded().restore(from: backup, replaces: false, label: "x")
        }
        let restored = try embedded().restore(from: backup, replaces: true, label: "x")
        #expect(restored.kept == data + "/team.sqlite.before-x")
        #expect(try name(in: data + "/team.sqlite") == "old")
        #expect(try name(in: data + "/team.sqlite.before-x") == "new")
        try open(data)
        #expect(try name(in: data + "/team.sqlite") == "old")
    }

    @Test("killed after any step, the data set is the old one or the new one, and a server starts")
    func killedRestore() throws {
        try prepare("old")
        _ = try embedded().make(at: backup, time: "2026-01-01T00:00:00Z")
        try write("new")
        var copies: [String] = []
        var restoring = try embedded()
        let (data, home) = (data, home)
        restoring.afterStep = {
            let copy = home.path + "/killed\(copies.count)"
            // The files are copied with both of their names.
            let copying = Process()
            copying.executableURL = URL(fileURLWithPath: "/bin/cp")
            copying.arguments = ["-a", data, copy]
            try? copying.run()
            copying.waitUntilExit()
            copies.append(copy)
        }
        _ = try restoring.restore(from: backup, replaces: true, label: "x")
        #expect(copies.count == 4)
        var names: [String] = []
        for copy in copies {
            try open(copy)
            names.append(try name(in: copy + "/team.sqlite") ?? "empty")
            // The file has one name only, and the old file is not lost.
            let links =
                try FileManager.default.attributesOfItem(atPath: copy + "/team.sqlite")[
                    .referenceCount] as? Int
            #expect(links == 1)
        }
        #expect(names == ["new", "new", "new", "old"])
        #expect(try name(in: copies[3] + "/team.sqlite.before-x") == "new")
        // Restoring again works from each of these states.
        for copy in copies {
            let again = try EmbeddedBackup(directory: copy, dataSet: "team")
            _ = try again.restore(from: backup, replaces: true, label: "y")
            #expect(try name(in: copy + "/team.sqlite") == "old")
        }
    }

    @Test("where the data set's file is missing and a restore's is there, no empty one is made")
    func missingFileWithRestore() throws {
        try prepare("old")
        _ = try embedded().make(at: backup, time: "2026-01-01T00:00:00Z")
        for other in ["team.sqlite.before-x", "team.sqlite.restoring"] {
            try FileManager.default.moveItem(
                atPath: data + "/team.sqlite", toPath: data + "/" + other)
            let failure = #expect(throws: ServerFailure.self) { try open(data) }
            #expect(failure?.message.contains(other) == true)
            #expect(!FileManager.default.fileExists(atPath: data + "/team.sqlite"))
            let found = try EmbeddedDoctor(directory: data, now: 3).findings()
            #expect(found.contains { $0.what.contains(other) })
            _ = try embedded().restore(from: backup, replaces: false, label: "x")
            try open(data)
            #expect(try name(in: data + "/team.sqlite") == "old")
            try? FileManager.default.removeItem(atPath: data + "/team.sqlite.before-x")
        }
        let found = try EmbeddedDoctor(directory: data, now: 3).findings()
        #expect(!found.contains { $0.what.contains("not finished") })
    }

    @Test(
        "where the data set's file is missing and other traces of it are there, no empty one is made",
        arguments: ["team.sqlite-wal", "snapshots/team"])
    func lostDataSetFile(trace: String) throws {
        try prepare("old")
        let path = data + "/" + trace
        try FileManager.default.createDirectory(
            atPath: data + "/snapshots/team", withIntermediateDirectories: true)
        // An empty folder of snapshots says nothing: another storage may have left it.
        try FileManager.default.removeItem(atPath: data + "/team.sqlite")
        try open(data)
        for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: data + "/team.sqlite" + suffix)
        }
        try Data("x".utf8).write(
            to: URL(fileURLWithPath: trace.hasSuffix("team") ? path + "/a.json" : path))
        let failure = #expect(throws: ServerFailure.self) { try open(data) }
        #expect(failure?.message.contains(path) == true)
        #expect(!FileManager.default.fileExists(atPath: data + "/team.sqlite"))
        // Only a server knows whether its data sets are in files: one on PostgreSQL has snapshots, too.
        let found = try EmbeddedDoctor(directory: data, now: 3).findings()
        #expect(found.contains { $0.what.contains(path) } == trace.hasSuffix("-wal"))
    }

    @Test("while another program has the file open, it is left alone")
    func inUse() throws {
        try prepare("old")
        _ = try embedded().make(at: backup, time: "2026-01-01T00:00:00Z")
        let other = try Connection(path: data + "/team.sqlite")
        try other.execute("BEGIN; SELECT * FROM teams;")
        let failure = #expect(throws: ServerFailure.self) {
            try embedded().restore(from: backup, replaces: true, label: "x")
        }
        #expect(failure?.message.contains("open") == true)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: data).filter {
                $0.hasPrefix("team.sqlite.")
            }.isEmpty)
        try other.execute("COMMIT")
    }

    @Test("a damaged file makes room, and is kept as it is")
    func damagedFileIsReplaced() throws {
        try prepare("old")
        _ = try embedded().make(at: backup, time: "2026-01-01T00:00:00Z")
        let noise = Data(repeating: 7, count: 10_000)
        try noise.write(to: URL(fileURLWithPath: data + "/team.sqlite"))
        let restored = try embedded().restore(from: backup, replaces: true, label: "x")
        #expect(try name(in: data + "/team.sqlite") == "old")
        #expect(FileManager.default.contents(atPath: try #require(restored.kept)) == noise)
    }

    @Test("by root, its files belong to the owner of the folder; doctor names those that do not")
    func owner() throws {
        try prepare("old")
        _ = try embedded().make(at: backup, time: "2026-01-01T00:00:00Z")
        guard getuid() == 0 else { return }
        let owner = [
            FileAttributeKey.ownerAccountID: NSNumber(value: 4_711),
            .groupOwnerAccountID: NSNumber(value: 4_712),
        ]
        try FileManager.default.setAttributes(owner, ofItemAtPath: data)
        let before = try EmbeddedDoctor(directory: data, now: 3).findings()
        #expect(before.contains { $0.what.contains("team.sqlite") && $0.what.contains("4711") })
        try FileManager.default.removeItem(atPath: data + "/team.sqlite")
        _ = try embedded().restore(from: backup, replaces: true, label: "x")
        let file = data + "/team.sqlite"
        #expect(FileOwner(of: file) == FileOwner(of: data))
        let after = try EmbeddedDoctor(directory: data, now: 3).findings()
        #expect(!after.contains { $0.what.contains("4711") }, "\(after)")
    }

    @Test("a file that cannot be opened is named")
    func named() throws {
        try FileManager.default.createDirectory(
            atPath: data + "/team.sqlite", withIntermediateDirectories: true)
        let failure = #expect(throws: ServerFailure.self) { try open(data) }
        #expect(failure?.message.contains(data + "/team.sqlite") == true)
    }
}
