internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import RedisKit

/// Where the blocks of a data set's log lie in Redis: finding, judging and putting them.
///
/// Confined to whoever holds it; blocks as long as its link may.
package final class BlockShelf {
    /// How long a block stays that nobody puts anew. Who sleeps longer is served by the log.
    static let secondsKept = 7 * 24 * 3_600

    let dataSet: String
    private let key: [UInt8]
    private let link: RedisLink

    /// - Parameters:
    ///   - dataSet: The data set's identity.
    ///   - key: What blocks are sealed with: at least 16 secret bytes, the same in every process.
    package init(dataSet: String, key: [UInt8], link: RedisLink) {
        self.dataSet = dataSet
        self.key = key
        self.link = link
    }

    /// Makes the connection to Redis, once more if it is lost. Without Redis it costs one try.
    func open() { link.connect() }

    static func name(of dataSet: String, _ first: Revision) -> String {
        "martlet:block:\(dataSet):\(first)"
    }

    /// The block that begins at `first`; nil where there is none that can be used.
    /// - Parameter isTrue: Whether the log's hash after an entry is this one.
    func block(
        from first: Revision,
        where isTrue: (Revision, LineageHash) throws(StorageFault) -> Bool
    ) throws(StorageFault) -> SealedBlock? {
        // One byte more than a block may have tells the largest from a cut one.
        let question = RedisCommand(
            "GETRANGE", Self.name(of: dataSet, first), "0", "\(SealedBlock.mostBytes)")
        guard let answer = link.answers(to: [question])?.first else { return nil }
        if case .bytes(let bytes) = answer, bytes.isEmpty {
            link.counters.count { $0.misses += 1 }
            return nil
        }
        guard case .bytes(let bytes) = answer,
            let sealed = SealedBlock(bytes, of: dataSet, first: first, key: key),
            try isTrue(sealed.block.last, sealed.after)
        else {
            // Damaged, forged, of another history, or no string at all: it is put anew.
            link.counters.count { $0.rejected += 1 }
            return nil
        }
        link.counters.count { $0.hits += 1 }
        return sealed
    }

    /// Puts a block in place of whatever is there.
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
