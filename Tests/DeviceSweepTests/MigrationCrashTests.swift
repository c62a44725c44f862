import Foundation
import MartletDevice
import MartletModel
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet

/// A file in use, what it holds after each version, and the disk's operations in between.
struct MigrationPath {
    let image: [UInt8]
    /// What the file holds: first as it was found, then after the second version, and so on.
    let contents: [String]
    /// Openings, writes, truncations, syncs and deletions of a migration in which nothing fails.
    let operations: Int
    let fallback: MigrationFallback
    let list: [Migration]

    init(fallback: MigrationFallback, list: [Migration] = SyncedVersions.all) throws {
        self.fallback = fallback
        self.list = list
        image = try SyncedFile("path").image()
        var contents: [String] = []
        for count in SyncedVersions.start...SyncedVersions.all.count {
            let file = SyncedFile("path-\(count)", image: image)
            if count > SyncedVersions.start { try file.open(count) }
            file.close()
            contents.append(try file.content())
        }
        self.contents = contents
        let file = SyncedFile("path-whole", image: image)
        _ = try file.open(list, fallback: fallback)
        file.close()
        operations = file.disk.operationCount
    }

    /// Where a file stands: the number of versions it has seen, of those after the first; nil where
    /// it is in between, or damaged.
    func position(of file: SyncedFile) throws -> Int? {
        guard try file.isSound() else { return nil }
        let content = try file.content()
        guard let position = contents.firstIndex(of: content) else { return nil }
        let recorded = try file.rows("SELECT max(version) FROM martlet_migrations")
        return recorded == ["\(position + 1)"] ? position : nil
    }
}

/// Crashes and failing operations at every operation of a migration of five versions, on a file with
/// sent and unsent change sets, a refused one, values kept aside and writes not yet in any set.
@Suite("Crashes and failures while versions run")
struct MigrationCrashTests {
    /// Whether every operation is tried in every way, as `scripts/long crash-migrations` does; by
    /// default each is tried once, in turns of the ways.
    private static let isWhole = ProcessInfo.processInfo.environment["MARTLET_CRASH_ALL"] != nil

    /// The operations to try, each with one way or all ways to fail.
    private static func points<Way>(_ operations: Int, _ ways: [Way]) -> [(Int, Way)] {
        (1...operations).flatMap { operation in
            isWhole
                ? ways.map { (operation, $0) } : [(operation, ways[operation % ways.count])]
        }
    }

    private func crash(
        _ path: MigrationPath, at operation: Int, _ survival: FaultDisk.Survival
    ) throws -> Int {
        let file = SyncedFile("crash", image: path.image)
        file.disk.failAfter(operations: operation, kind: .crash)
        _ = try? file.open(path.list, fallback: path.fallback)
        file.close()
        #expect(file.disk.isDown, "no operation \(operation)")
        var numbers = CrashNumbers(state: UInt64(operation))
        file.disk.restart(survival, using: &numbers)
        let position = try path.position(of: file)
        #expect(position != nil, "crash at \(operation), \(survival)")
        // The next opening goes on from there, as if nothing had happened.
        #expect(
            try file.open(path.list, fallback: path.fallback).migration?.failure == nil,
            "after a crash at \(operation), \(survival)")
        file.close()
        #expect(
            try path.position(of: file) == path.contents.count - 1,
            "after a crash at \(operation), \(survival)")
        #expect(!file.disk.paths.contains { $0.contains("copy") })
        return position ?? 0
    }

    @Test("a crash at any operation leaves the old or the new schema of a version, and every edit")
    func crashesOfMigration() throws {
        let path = try MigrationPath(fallback: .fail)
        var positions: Set<Int> = []
        var points = 0
        for (operation, survival) in Self.points(path.operations, FaultDisk.Survival.allCases) {
            positions.insert(try crash(path, at: operation, survival))
            points += 1
        }
        print("crashed at \(points) points of \(path.operations) operations")
        #expect(positions == Set(0..<path.contents.count))
    }

    @Test("a crash with a copy of the file at hand is no different")
    func crashesBesideCopy() throws {
        let path = try MigrationPath(fallback: .restoreCopy)
        var positions: Set<Int> = []
        var points = 0
        for (operation, survival) in Self.points(path.operations, FaultDisk.Survival.allCases) {
            positions.insert(try crash(path, at: operation, survival))
            points += 1
        }
        print("crashed beside a copy at \(points) points of \(path.operations) operations")
        #expect(positions.count > 3)
    }

    @Test("a failing operation, or a full disk, stops at a version; opened again, it goes on")
    func failuresOfMigration() throws {
        let path = try MigrationPath(fallback: .fail)
        var positions: Set<Int> = []
        var points = 0
        let ways: [(kind: FaultDisk.Failure, lasting: Bool)] = [
            (.ioError, false), (.full, true), (.ioError, true), (.full, false),
        ]
        for (operation, way) in Self.points(path.operations, ways) {
            let file = SyncedFile("failure", image: path.image)
            file.disk.failAfter(operations: operation, kind: way.kind, lasting: way.lasting)
            do {
                try file.open(path.list)
            } catch {
                #expect(error is StoreError, "\(way) at \(operation): \(error)")
            }
            file.close()
            file.disk.heal()
            let position = try path.position(of: file)
            #expect(position != nil, "\(way) at \(operation)")
            positions.insert(position ?? 0)
            try file.open(path.list)
            file.close()
            #expect(
                try path.position(of: file) == path.contents.count - 1, "\(way) at \(operation)")
            points += 1
        }
        print("failed at \(points) points of \(path.operations) operations")
        #expect(positions == Set(0..<path.contents.count))
    }

    @Test("a crash while the copy is put back leaves the copy's state, or the one before it")
    func crashesOfRestoring() throws {
        let broken =
            SyncedVersions.all[..<4] + [
                Migration(5, "broken") { try $0.dropTable("nothing") }
            ]
        let path = try MigrationPath(fallback: .restoreCopy, list: Array(broken))
        var positions: Set<Int> = []
        var points = 0
        for (operation, survival) in Self.points(path.operations, FaultDisk.Survival.allCases) {
            let file = SyncedFile("restoring", image: path.image)
            file.disk.failAfter(operations: operation, kind: .crash)
            _ = try? file.open(path.list, fallback: .restoreCopy)
            file.close()
            var numbers = CrashNumbers(state: UInt64(operation))
            file.disk.restart(survival, using: &numbers)
            let position = try path.position(of: file)
            #expect(position != nil, "crash at \(operation), \(survival)")
            positions.insert(position ?? 0)
            // Whatever is there now is what a later opening goes back to.
            do {
                let again = try file.open(path.list, fallback: .restoreCopy)
                #expect(again.migration?.failure != nil)
            }
            file.close()
            #expect(try path.position(of: file) == position)
            #expect(!file.disk.paths.contains { $0.contains("copy") })
            points += 1
        }
        print("crashed at \(points) points of \(path.operations) operations of going back")
        #expect(positions == [0, 1, 2, 3])
    }
}

/// Numbers that follow from a seed.
struct CrashNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}
