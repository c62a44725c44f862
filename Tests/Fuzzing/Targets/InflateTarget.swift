import CompressionKit
import DeflateKit
import ZstdKit

/// Compressed bodies and files. The first byte says how they are cut.
enum InflateTarget: FuzzTarget {
    static let name = "inflate"

    private static let limits = InflationLimits(bytes: 1 << 16, ratio: 20, ratioFloor: 1 << 10)

    static func check(_ input: [UInt8]) throws {
        guard let seed = input.first else { return }
        let body = Array(input.dropFirst())
        try checkBody(body, seed)
        // A decoder of frames takes long to make; whatever else there is it refuses at its first bytes.
        if isFrame(body) || seed % 16 == 0 { try checkFrame(body, seed) }
        // Compressing is slow, and has nothing to do with what is inflated.
        guard seed == 0 else { return }
        try checkFrame(of: body, seed)
        for compressed in [Gzip.compress(body), OneShotGzip.compress(body)] {
            let plain = try OneShotGzip.inflate(
                compressed, limit: body.count, ratio: 2_000, ratioFloor: 0)
            try hold(plain == body, "what is compressed inflates to the same")
        }
    }

    private static func checkBody(_ body: [UInt8], _ seed: UInt8) throws {
        let careful = Result { () throws(CompressionError) in
            try Gzip.inflate(body, limits: limits)
        }
        let quick = Result { () throws(CompressionError) in
            try OneShotGzip.inflate(body, limits: limits)
        }
        switch (careful, quick) {
        case (.success(let one), .success(let other)):
            try hold(one == other, "both libraries inflate to the same")
            try hold(
                one.count <= limits.cap(forCompressed: body.count), "no more than the limit")
            let reader = GzipReader()
            var read: [UInt8] = []
            for piece in pieces(of: body[...], seed: seed) { read += try reader.inflate(piece) }
            try reader.finish()
            try hold(read == one, "a file in pieces inflates to the same")
        case (.failure(let one), .failure(let other)):
            try hold(one.kind == other.kind, "both libraries find the same wrong: \(one), \(other)")
        default: throw BrokenPromise(description: "both libraries accept the same")
        }
        // A file has no limit, but its pieces have one.
        let reader = GzipReader()
        var count = 0
        for piece in pieces(of: body[...], seed: seed) {
            guard let plain = try? reader.inflate(piece) else { return }
            count += plain.count
        }
        try hold(count <= 1_040 * body.count + 1_040, "a file inflates to what deflate can hold")
    }

    /// Whether the bytes begin as a frame of zstd, or one to be skipped, does.
    private static func isFrame(_ body: [UInt8]) -> Bool {
        guard body.count >= 4 else { return false }
        return body[..<4].elementsEqual([0x28, 0xB5, 0x2F, 0xFD])
            || (body[0] & 0xF0 == 0x50 && body[1..<4].elementsEqual([0x2A, 0x4D, 0x18]))
    }

    private static func checkFrame(_ body: [UInt8], _ seed: UInt8) throws {
        let reader = ZstdReader()
        for piece in pieces(of: body[...], seed: seed % 16) {
            // A block takes four bytes and holds 128 KiB.
            guard let plain = try? reader.read(piece) else { break }
            try hold(
                plain.count <= (piece.count / 3 + 2) << 17, "a frame inflates to what it can hold")
        }
    }

    private static func checkFrame(of body: [UInt8], _ seed: UInt8) throws {
        let writer = ZstdWriter()
        let frame = writer.write(body, isLast: true)
        let again = ZstdReader()
        var plain: [UInt8] = []
        for piece in pieces(of: frame[...], seed: seed) { plain += try again.read(piece) }
        try hold(plain == body && again.isAtEnd, "what is compressed inflates to the same")
    }
}
