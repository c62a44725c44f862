import Testing
import ZstdKit

@Suite("Zstandard")
struct ZstdTests {
    private func bytes(_ count: Int) -> [UInt8] {
        var state: UInt32 = 7
        return (0..<count).map { index in
            state = state &* 1_664_525 &+ 1_013_904_223
            return index % 3 == 0 ? UInt8(truncatingIfNeeded: state >> 24) : UInt8(index % 17)
        }
    }

    private func compressed(_ plain: [UInt8], piece: Int) -> [UInt8] {
        let writer = ZstdWriter()
        var out: [UInt8] = []
        for start in stride(from: 0, to: plain.count, by: piece) {
            out += writer.write(
                Array(plain[start..<min(plain.count, start + piece)]), isLast: false)
        }
        return out + writer.write([], isLast: true)
    }

    private func inflated(_ bytes: [UInt8], piece: Int) throws -> [UInt8] {
        let reader = ZstdReader()
        var out: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: piece) {
            out += try reader.read(Array(bytes[start..<min(bytes.count, start + piece)]))
        }
        #expect(reader.isAtEnd)
        return out
    }

    @Test("what goes in in pieces comes out in other pieces", arguments: [0, 1, 1_000, 3_000_000])
    func roundTripOfZstd(count: Int) throws {
        let plain = bytes(count)
        for piece in [999, 1 << 20] {
            let packed = compressed(plain, piece: piece)
            #expect(count < 1_000 || packed.count < count)
            #expect(try inflated(packed, piece: 777) == plain)
        }
    }

    @Test("damage and what follows the end are noticed")
    func damageAndTrailingBytes() throws {
        var packed = compressed(bytes(100_000), piece: 5_000)
        #expect(throws: ZstdError.self) { try inflated(packed + [0], piece: 1_000) }
        packed[packed.count / 2] ^= 0x40
        #expect(throws: ZstdError.self) { try inflated(packed, piece: 1_000) }
        let reader = ZstdReader()
        _ = try reader.read(Array(compressed(bytes(1_000), piece: 100).dropLast()))
        #expect(!reader.isAtEnd)
    }
}
