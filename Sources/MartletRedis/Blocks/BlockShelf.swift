internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import RedisKit

/// The blocks of a data set's log in Redis: it reads, verifies and stores them.
///
/// It is confined to its holder, and blocks at most for the time that its link allows.
package final class BlockShelf {
    /// The seconds that Redis keeps a block that is not stored again. The log serves devices that
    /// were offline for longer.
    static let secondsKept = 7 * 24 * 3_600

    let dataSet: String
    private let key: [UInt8]
    private let link: RedisLink

    /// Makes a shelf for a data set's blocks.
    /// - Parameters:
    ///   - dataSet: The data set's identity.
    ///   - key: The key of the seals: at least 16 secret bytes, the same in every process.
    package init(dataSet: String, key: [UInt8], link: RedisLink) {
        self.dataSet = dataSet
        self.key = key
        self.link = link
    }

    /// Connects to Redis, or reconnects if the connection is lost. Without Redis this costs one
    /// attempt.
    func open() { link.connect() }

    static func name(of dataSet: String, _ first: Revision) -> String {
        "martlet:block:\(dataSet):\(first)"
    }

    /// Returns the block that begins at `first`; nil if there is none that can be used.
    /// - Parameter isTrue: Returns whether the log has this hash after the entry with this
    ///   revision.
    /// - Throws: The `StorageFault` of `isTrue`.
    func block(
        from first: Revision,
        where isTrue: (Revision, LineageHash) throws(StorageFault) -> Bool
    ) throws(StorageFault) -> SealedBlock? {
        // One byte more than the limit shows if the value is longer than a block may be.
        let command = RedisCommand(
            "GETRANGE", Self.name(of: dataSet, first), "0", "\(SealedBlock.mostBytes)")
        guard let answer = link.answers(to: [command])?.first else { return nil }
        if case .bytes(let bytes) = answer, bytes.isEmpty {
            link.counters.count { $0.misses += 1 }
            return nil
        }
        guard case .bytes(let bytes) = answer,
            let sealed = SealedBlock(bytes, of: dataSet, first: first, key: key),
            try isTrue(sealed.block.last, sealed.after)
        else {
            // The block is damaged, forged, of another history, or no string at all. A later put
            // replaces it.
            link.counters.count { $0.rejected += 1 }
            return nil
        }
        link.counters.count { $0.hits += 1 }
        return sealed
    }

    /// Stores a block in place of any present value.
    func put(_ sealed: SealedBlock) {
        guard let bytes = sealed.bytes(of: dataSet, key: key) else { return }
        let words: [[UInt8]] = [
            [UInt8]("SET".utf8), [UInt8](Self.name(of: dataSet, sealed.block.first).utf8), bytes,
            [UInt8]("EX".utf8), [UInt8]("\(Self.secondsKept)".utf8),
        ]
        if case .status = link.answers(to: [RedisCommand(words)])?.first {
            link.counters.count { $0.stored += 1 }
        }
    }
}

@available(*, unavailable)
extension BlockShelf: Sendable {}
