internal import CompressionKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import OpenSSLKit

/// A block of consecutive entries in the form that Redis stores.
///
/// The seal is a keyed hash over all of it. Only the database has the key, so a program that can
/// write to Redis can remove blocks but not forge them. The seal does not show if the block belongs
/// to the present log. The chained hashes at both ends show that. The entries' bodies are
/// compressed in the form that answers need, so a block goes from Redis to a device without being
/// unpacked.
struct SealedBlock {
    /// The largest number of bytes of a sealed block. Larger ones are not stored.
    static let mostBytes = 4 << 20
    /// The mark of the format. It is raised when the format changes.
    private static let mark = [UInt8]("martlet1".utf8)
    private static let sealBytes = 32

    let block: LogCache.Block
    /// The chained hash before the first entry.
    let before: LineageHash
    /// The chained hash after the last entry.
    let after: LineageHash
    /// The compressed fields of each entry except its body.
    private let details: [UInt8]

    init(_ block: LogCache.Block, entries: [LogEntry], before: LineageHash) {
        self.block = block
        self.before = before
        after = entries.last?.hash ?? before
        var form = ByteWriter(reserving: entries.count * 64)
        for entry in entries {
            form.number(entry.device)
            form.text(entry.identifier)
            form.number(entry.sequence == nil ? 0 : 1)
            form.number(entry.sequence ?? 0)
            form.text(entry.temporaries)
            form.number(entry.time)
            form.number(entry.body.count)
        }
        details = Gzip.compress(form.bytes)
    }

    /// Returns the block's stored form; nil if the block is too large.
    func bytes(of dataSet: String, key: [UInt8]) -> [UInt8]? {
        var form = ByteWriter(reserving: block.piece.bytes.count + details.count + 512)
        form.text(dataSet)
        form.number(block.first)
        form.number(block.last)
        form.raw(before.bytes)
        form.raw(after.bytes)
        form.number(block.devices.count)
        for device in block.devices.sorted() { form.number(device) }
        form.number(UInt64(block.piece.crc32))
        form.number(block.piece.uncompressedCount)
        form.counted(block.piece.bytes)
        form.counted(details)
        let seal = HMACSHA256.code(form.bytes, key: key)
        let bytes = Self.mark + seal + form.bytes
        return bytes.count <= Self.mostBytes ? bytes : nil
    }

    /// Opens a block; nil unless it is a block of this data set that begins at `first` and that one
    /// of its servers has sealed.
    init?(_ bytes: [UInt8], of dataSet: String, first: Revision, key: [UInt8]) {
        let start = Self.mark.count + Self.sealBytes
        guard bytes.count > start, bytes.count <= Self.mostBytes, bytes.starts(with: Self.mark)
        else { return nil }
        let content = Array(bytes[start...])
        guard
            constantTimeEqual(
                Array(bytes[Self.mark.count..<start]), HMACSHA256.code(content, key: key))
        else { return nil }
        var form = ByteReader(content)
        guard form.text() == .some(dataSet), form.integer() == first,
            let last = form.integer(), last >= first, last - first < LogCache.blockEntries,
            let before = form.raw(16), let after = form.raw(16), let count = form.count()
        else { return nil }
        var devices: Set<Int64> = []
        for _ in 0..<count {
            guard let device = form.integer() else { return nil }
            devices.insert(device)
        }
        guard let crc = form.number(), let plain = form.number(), plain <= UInt64(Int32.max),
            let piece = form.counted(), let details = form.counted(), form.isAtEnd
        else { return nil }
        self.before = LineageHash(stored: before)
        self.after = LineageHash(stored: after)
        self.details = details
        block = LogCache.Block(
            first: first, last: last,
            piece: DeflatePiece(
                bytes: piece, crc32: UInt32(truncatingIfNeeded: crc),
                uncompressedCount: Int(plain)),
            devices: devices)
    }

    /// Returns the entries, unpacked, with recomputed chained hashes; nil if these do not lead to
    /// the hash at the end.
    func entries() -> [LogEntry]? {
        var joiner = GzipJoiner(reserving: block.piece.bytes.count)
        joiner.append(block.piece)
        let count = block.piece.uncompressedCount
        guard
            let plain = try? Gzip.inflate(
                joiner.finished(),
                limits: InflationLimits(bytes: count, ratio: 1_100, ratioFloor: count)),
            let details = try? Gzip.inflate(
                details,
                limits: InflationLimits(bytes: 16 << 20, ratio: 1_100, ratioFloor: 1 << 16))
        else { return nil }
        var form = ByteReader(details)
        var entries: [LogEntry] = []
        var hash = before
        var start = 0
        for revision in block.first...block.last {
            guard let device = form.integer(), let identifier = form.text(),
                let isNumbered = form.number(), let sequence = form.integer(),
                let temporaries = form.text(), let time = form.integer(),
                let length = form.number(), length <= UInt64(plain.count - start)
            else { return nil }
            let body = Array(plain[start..<(start + Int(length))])
            // A comma follows each entry except the last.
            start = min(plain.count, start + Int(length) + 1)
            hash = hash.appending(body, identifier: identifier)
            entries.append(
                LogEntry(
                    revision: revision, device: device, identifier: identifier,
                    sequence: isNumbered == 0 ? nil : sequence, temporaries: temporaries,
                    body: body, hash: hash, time: time))
        }
        return hash == after && form.isAtEnd ? entries : nil
    }
}
