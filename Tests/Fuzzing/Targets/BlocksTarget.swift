import MartletServerCore
import OpenSSLKit

@testable import MartletRedis

/// Blocks of the log from Redis: as they lie there, and with a seal that is good.
enum BlocksTarget: FuzzTarget {
    static let name = "blocks"

    /// What the kept inputs are sealed with, too.
    static let key = [UInt8]("a key of thirty-two bytes, known!".utf8)
    static let dataSet = "abc"

    static func check(_ input: [UInt8]) throws {
        if let block = SealedBlock(input, of: dataSet, first: 1, key: key) {
            try hold(
                block.bytes(of: dataSet, key: key) == input, "an opened block is the one sealed")
            try checkEntries(block)
        }
        try hold(
            SealedBlock(input, of: dataSet, first: 1, key: [1]) == nil,
            "a block sealed with another key is not opened")
        let sealed = [UInt8]("martlet1".utf8) + HMACSHA256.code(input, key: key) + input
        if let block = SealedBlock(sealed, of: dataSet, first: 1, key: key) {
            try checkEntries(block)
        }
    }

    private static func checkEntries(_ block: SealedBlock) throws {
        try hold(
            block.block.first == 1 && block.block.last >= 1
                && block.block.last <= LogCache.blockEntries, "a block has as many as it may")
        guard let entries = block.entries() else { return }
        try hold(
            entries.map(\.revision) == Array(block.block.first...block.block.last),
            "entries have the block's revisions")
        try hold(entries.last?.hash == block.after, "the hash leads to the end")
    }
}
