import MartletEmbedded
import MartletServerCore
import SQLiteFaults
import SQLiteKit
import Testing

/// A server on a disk that fails; it is opened again after each crash.
final class FaultyServer {
    static let path = "/data.sqlite"

    let disk: FaultDisk
    /// Deeds that had to be done once more.
    private(set) var faults = 0
    /// Nil where it is down.
    private(set) var node: DataSetNode?
    private var store: EmbeddedStore?
    private var random: Numbers
    private let schema: String
    private let cacheBytes: Int

    /// - Parameter cacheBytes: What the node may keep of its log.
    init(schema: String, name: String, seed: UInt64, cacheBytes: Int = 64 << 20) {
        disk = FaultDisk(name: name, seed: seed)
        random = Numbers(state: seed)
        self.schema = schema
        self.cacheBytes = cacheBytes
    }

    /// Has something done, once more after every fault.
    /// - Parameter deed: Whether it was done.
    func insist(_ deed: (DataSetNode) throws -> Bool) throws {
        var tries = 0
        while try !attempt(deed) {
            faults += 1
            tries += 1
            try #require(tries < 6, "the node does not recover")
            if disk.isDown {
                node = nil
                store = nil
                disk.restart(using: &random)
            } else if tries > 1 {
                disk.heal()
            }
        }
    }

    private func attempt(_ deed: (DataSetNode) throws -> Bool) throws -> Bool {
        let node: DataSetNode
        do {
            node = try self.node ?? open()
        } catch is StorageFault {
            return false
        }
        return try deed(node)
    }

    private func open() throws -> DataSetNode {
        let opened = try EmbeddedStore(
            path: Self.path, vfs: disk.vfsName, script: schema, identity: "abc", now: 1)
        let made = try DataSetNode(store: opened, cacheBytes: cacheBytes)
        (store, node) = (opened, made)
        return made
    }

    /// A sound file on the disk, which works from now on.
    func connection() throws -> Connection {
        disk.heal()
        let connection = try Connection(path: Self.path, vfs: disk.vfsName)
        #expect(try connection.text("PRAGMA integrity_check") == "ok")
        #expect(try connection.text("PRAGMA foreign_key_check") == nil)
        return connection
    }
}

/// Numbers that follow from a seed.
struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}
