package import CompressionKit
package import MartletModel
internal import MartletProtocol
import Synchronization

/// The part of the log that is in memory: the newest entries as they are sent, and compressed
/// blocks of consecutive entries.
///
/// It is bounded in bytes, and readers read the rest from the storage. Any thread may use it: one
/// lock, which is held for moments, guards every member.
package final class LogCache: Sendable {
    /// The most entries of a compressed block. Blocks never cross a multiple of it, so that the
    /// same ones serve every device.
    package static let blockEntries: Revision = 256
    /// The bytes after which a block ends early.
    package static let blockBytes = 512 << 10
    /// The bytes from which an entry may be a block of its own.
    static let largeEntryBytes = 8 << 10
    /// The number of hashes that are kept, for devices that name the hash of their last entry.
    private static let hashes = 1 << 16

    /// Consecutive entries with commas between them, compressed.
    package struct Block: Sendable {
        package let first: Revision
        package let last: Revision
        package let piece: DeflatePiece
        /// The devices that sent them. A device receives its own entries in another format.
        package let devices: Set<Int64>

        package init(first: Revision, last: Revision, piece: DeflatePiece, devices: Set<Int64>) {
            self.first = first
            self.last = last
            self.piece = piece
            self.devices = devices
        }

        /// Compresses entries; nil if there are none.
        package init?(of entries: [LogEntry]) {
            guard let first = entries.first, let last = entries.last else { return nil }
            var plain: [UInt8] = []
            plain.reserveCapacity(entries.reduce(entries.count) { $0 + $1.body.count })
            for entry in entries {
                if entry.revision != first.revision { plain.append(UInt8(ascii: ",")) }
                plain.append(contentsOf: entry.body)
            }
            self.init(
                first: first.revision, last: last.revision,
                piece: DeflatePiece(compressing: plain), devices: Set(entries.map(\.device)))
        }
    }

    private struct State: Sendable {
        var head: LogHead
        var floor: Revision
        /// A number that rises whenever another history may have replaced this one.
        var generation = 0
        var entries: [LogEntry] = []
        /// The number of dropped entries that are still at the beginning of `entries`.
        var dropped = 0
        var entryBytes = 0
        /// The bytes of all entries that were ever added.
        var addedBytes = 0
        var blocks: [Revision: Block] = [:]
        var blockBytes = 0
        /// The hashes of the newest revisions, up to the head's.
        var hashes: [LineageHash] = []

        mutating func clear() {
            entries = []
            dropped = 0
            entryBytes = 0
            blocks = [:]
            blockBytes = 0
            hashes = []
        }

        func hash(at revision: Revision) -> LineageHash? {
            let back = head.revision - revision
            guard back >= 0, back < Revision(hashes.count) else { return nil }
            return hashes[hashes.count - 1 - Int(back)]
        }

        /// Adds the next entry; does nothing if it is present.
        mutating func append(_ entry: LogEntry) {
            if entry.revision <= head.revision {
                let held = hash(at: entry.revision)
                if held == nil || held == entry.hash { return }
                // It is another history, so everything held of this one is invalid.
                generation += 1
                clear()
            } else if entry.revision > head.revision + 1 {
                // After a gap, the older entries do not join the new ones.
                clear()
            }
            entries.append(entry)
            entryBytes += entry.footprint
            addedBytes += entry.body.count
            hashes.append(entry.hash)
            head = LogHead(revision: entry.revision, hash: entry.hash)
        }
    }

    private let state: Mutex<State>
    private let entryLimit: Int
    private let blockLimit: Int

    /// Makes an empty cache.
    ///
    /// - Parameter byteLimit: The approximate most bytes: a quarter for entries as they are, the
    ///   rest for blocks.
    package init(head: LogHead, floor: Revision = 0, byteLimit: Int = 64 << 20) {
        state = Mutex(State(head: head, floor: floor, hashes: [head.hash]))
        entryLimit = byteLimit / 4
        blockLimit = byteLimit - byteLimit / 4
    }

    package var head: LogHead { state.withLock { $0.head } }

    /// The number of the history that is held. It changes if the log turns out to be a different
    /// one.
    var generation: Int { state.withLock { $0.generation } }

    /// The bytes of all entries that were ever added. The number grows as the log does.
    var addedBytes: Int { state.withLock { $0.addedBytes } }

    /// The values of `head` and `generation` at one moment.
    var version: (head: LogHead, generation: Int) {
        state.withLock { ($0.head, $0.generation) }
    }

    /// The revision up to which entries are not available. A device that is behind it gets a
    /// difference.
    package var floor: Revision { state.withLock { $0.floor } }

    /// Follows the storage's floor, and forgets blocks for which no device can ask.
    package func raise(floor: Revision) {
        state.withLock { state in
            guard floor > state.floor else { return }
            state.floor = floor
            for (first, block) in state.blocks where first <= floor {
                state.blockBytes -= block.piece.bytes.count
                state.blocks[first] = nil
            }
        }
    }

    /// Adds committed entries, in order. Entries that are present are skipped, because the writer
    /// and the follower of the log may both bring them.
    ///
    /// - Parameter generation: The history to which the entries belong, or nil to add them in any
    ///   case.
    package func append(_ entries: [LogEntry], to generation: Int? = nil) {
        guard !entries.isEmpty else { return }
        state.withLock { state in
            if let generation, generation != state.generation { return }
            for entry in entries { state.append(entry) }
            if state.hashes.count > 2 * Self.hashes {
                state.hashes.removeFirst(state.hashes.count - Self.hashes)
            }
            while state.entryBytes > entryLimit, state.dropped < state.entries.count - 1 {
                state.entryBytes -= state.entries[state.dropped].footprint
                state.dropped += 1
            }
            if state.dropped > 64, state.dropped > state.entries.count / 2 {
                state.entries.removeFirst(state.dropped)
                state.dropped = 0
            }
        }
    }

    /// Forgets everything, and notes the log's end as the storage has it.
    ///
    /// - Parameter version: The cache is reset only if this is still its state; nil resets it in any
    ///   case.
    /// - Returns: True if it was reset.
    @discardableResult
    package func reset(
        to head: LogHead, floor: Revision, ifAt version: (head: LogHead, generation: Int)? = nil
    ) -> Bool {
        state.withLock { state in
            if let version, version.head != state.head || version.generation != state.generation {
                return false
            }
            state.generation += 1
            state.clear()
            state.head = head
            state.floor = floor
            state.hashes = [head.hash]
            return true
        }
    }

    /// Returns the hash after an entry; nil if the cache does not have it.
    func hash(at revision: Revision) -> LineageHash? {
        state.withLock { $0.hash(at: revision) }
    }

    /// Returns consecutive entries from `first`, like `LogSource.entries`; nil if the cache does
    /// not have `first`.
    func entries(from first: Revision, through last: Revision, maxBytes: Int) -> [LogEntry]? {
        state.withLock { state in
            guard state.dropped < state.entries.count,
                first >= state.entries[state.dropped].revision, first <= state.head.revision
            else { return nil }
            var index = state.entries.count - 1 - Int(state.head.revision - first)
            var found: [LogEntry] = []
            var bytes = 0
            while index < state.entries.count, state.entries[index].revision <= last,
                bytes < maxBytes
            {
                found.append(state.entries[index])
                bytes += state.entries[index].body.count
                index += 1
            }
            return found
        }
    }

    func block(from first: Revision) -> Block? {
        state.withLock { $0.blocks[first] }
    }

    /// Keeps a block. If there is no room, it removes the oldest blocks, because devices are more
    /// often a little behind than far.
    ///
    /// - Parameter generation: The history from which the entries were taken.
    func keep(_ block: Block, of generation: Int) {
        state.withLock { state in
            guard generation == state.generation, block.last <= state.head.revision,
                block.first > state.floor,
                state.blocks[block.first] == nil
            else {
                return
            }
            state.blocks[block.first] = block
            state.blockBytes += block.piece.bytes.count
            while state.blockBytes > blockLimit, let oldest = state.blocks.keys.min() {
                state.blockBytes -= state.blocks[oldest]?.piece.bytes.count ?? 0
                state.blocks[oldest] = nil
            }
        }
    }
}
