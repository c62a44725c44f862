package import CompressionKit
package import MartletModel
internal import MartletProtocol
import Synchronization

/// What of the log is held in memory: the newest entries as they are sent, and blocks of
/// consecutive entries already compressed. Bounded in bytes; what is missing is read from the
/// storage.
///
/// Sendable: any thread may answer from it. Every member is guarded by one lock, held for moments.
package final class LogCache: Sendable {
    /// Entries of one compressed block at most. Blocks never cross a multiple of it, so that
    /// every device is served by the same ones.
    package static let blockEntries: Revision = 256
    /// Bytes after which a block ends early.
    package static let blockBytes = 512 << 10
    /// Bytes from which on an entry may be a block of its own.
    static let largeEntryBytes = 8 << 10
    /// Hashes kept, for devices that name their last entry's.
    private static let hashes = 1 << 16

    /// Consecutive entries, comma between them, compressed.
    package struct Block: Sendable {
        package let first: Revision
        package let last: Revision
        package let piece: DeflatePiece
        /// Who sent them: a device receives its own entries in another form.
        package let devices: Set<Int64>

        package init(first: Revision, last: Revision, piece: DeflatePiece, devices: Set<Int64>) {
            self.first = first
            self.last = last
            self.piece = piece
            self.devices = devices
        }

        /// Compresses entries; nil where there are none.
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
        /// Raised whenever another history may have taken this one's place.
        var generation = 0
        var entries: [LogEntry] = []
        /// Entries that were dropped and still stand at the beginning of `entries`.
        var dropped = 0
        var entryBytes = 0
        /// The bytes of all entries that were ever added.
        var addedBytes = 0
        var blocks: [Revision: Block] = [:]
        var blockBytes = 0
        /// Of the newest revisions, up to the head's.
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

        /// Takes over the entry that follows; nothing where it is there already.
        mutating func append(_ entry: LogEntry) {
            if entry.revision <= head.revision {
                let held = hash(at: entry.revision)
                if held == nil || held == entry.hash { return }
                // Another history: nothing of this one holds any more.
                generation += 1
                clear()
            } else if entry.revision > head.revision + 1 {
                // After a gap nothing older joins what follows.
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

    /// - Parameter byteLimit: Bytes held at most, about: a quarter for entries as they are, the
    ///   rest for blocks.
    package init(head: LogHead, floor: Revision = 0, byteLimit: Int = 64 << 20) {
        state = Mutex(State(head: head, floor: floor, hashes: [head.hash]))
        entryLimit = byteLimit / 4
        blockLimit = byteLimit - byteLimit / 4
    }

    package var head: LogHead { state.withLock { $0.head } }

    /// Which history is held: another number after the log turned out to be another one.
    var generation: Int { state.withLock { $0.generation } }

    /// The bytes of all entries that were ever added; the number grows as the log does.
    var addedBytes: Int { state.withLock { $0.addedBytes } }

    /// `head` and `generation`, at one moment.
    var place: (head: LogHead, generation: Int) {
        state.withLock { ($0.head, $0.generation) }
    }

    /// Entries up to this revision are not to be had: what is behind it gets a difference.
    package var floor: Revision { state.withLock { $0.floor } }

    /// Follows the storage's floor, and forgets blocks that no one can ask for any more.
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

    /// Adds entries that were committed, in order. Those that are there already are passed over:
    /// who writes the log and who follows it may both bring them.
    /// - Parameter generation: Adds them to this history only; nil adds them in any case.
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

    /// Forgets everything: the storage says where the log ends.
    /// - Parameter place: Only where this is still the end of what is held; nil: in any case.
    /// - Returns: Whether it did.
    @discardableResult
    package func reset(
        to head: LogHead, floor: Revision, ifAt place: (head: LogHead, generation: Int)? = nil
    ) -> Bool {
        state.withLock { state in
            if let place, place.head != state.head || place.generation != state.generation {
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

    /// The hash after an entry; nil where it is not held.
    func hash(at revision: Revision) -> LineageHash? {
        state.withLock { $0.hash(at: revision) }
    }

    /// Consecutive entries from `first`, as `LogSource.entries`; nil where `first` is not held.
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

    /// Keeps a block, in place of others where there is no room: the oldest go first, for devices
    /// are more often a little behind than far.
    /// - Parameter generation: The history its entries were taken from.
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
