internal import CompressionKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import OpenSSLKit

/// A block of consecutive entries as it lies in Redis.
///
/// The seal is a keyed hash over all of it; the key is in the database and nowhere else, so whoever
/// may write to Redis can remove blocks, and make none. What a seal does not say is whether the
/// block belongs to the log as it is now: that is what the chained hashes at both ends are for.
/// The entries' bodies are compressed as answers take them, so that a block goes from Redis to a
/// device without being unpacked.
struct SealedBlock {
    /// Bytes of a sealed block at most; larger ones are not kept.
    static let mostBytes = 4 << 20
    /// Raised when the form changes.
    private static let mark = [UInt8]("martlet1".utf8)
    private static let sealBytes = 32

    let block: LogCache.Block
    /// The chained hash before the first entry.
    let before: LineageHash
    /// The chained hash after the last entry.
    let after: LineageHash
    /// What there is of each entry beside its body, compressed.
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

    /// The block as it is kept; nil for one that is too large.
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

    /// Opens a block; nil for anything but one of this data set that begins at `first`, as one of
    /// its servers has sealed it.
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

    /// The entries, unpacked, with the chained hash worked out anew; nil where it does not lead to
    /// the end.
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
            // A comma stands behind each but the last.
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
