import CompressionKit
import Foundation
import Testing

@Suite("Gzip joiner")
struct GzipJoinerTests {
    private let limits = InflationLimits(bytes: 64 << 20, ratio: 2_000, ratioFloor: 1 << 20)

    private func joined() -> (plain: [UInt8], packed: [UInt8]) {
        var plain = Array("{\"changeSets\":[".utf8)
        var joiner = GzipJoiner(reserving: 1_000)
        joiner.append(plain: plain)
        let compressor = PieceCompressor(level: 1)
        for index in 0..<40 {
            let piece = mixed(index * 137, seed: UInt64(index))
            plain += piece
            joiner.append(compressor.piece(piece))
            plain += Array(",".utf8)
            joiner.append(plain: Array(",".utf8))
        }
        let large = mixed(200_000)
        plain += large + large
        joiner.append(plain: large)
        joiner.append(DeflatePiece(compressing: large, level: 6))
        #expect(joiner.uncompressedCount == plain.count)
        return (plain, joiner.finished())
    }

    @Test("makes one member with the right checksum of pieces and plain bytes")
    func oneMember() throws {
        let (plain, packed) = joined()
        // Refuses several members, and any wrong checksum or length.
        expectSame(try Gzip.inflate(packed, limits: limits), plain)
    }

    @Test("makes a member of nothing")
    func emptyMember() throws {
        #expect(try Gzip.inflate(GzipJoiner().finished(), limits: limits) == [])
        var joiner = GzipJoiner()
        joiner.append(DeflatePiece(compressing: []))
        joiner.append(plain: [])
        #expect(try Gzip.inflate(joiner.finished(), limits: limits) == [])
    }

    @Test("a piece does not depend on where it stands or on what was compressed before it")
    func independent() throws {
        let compressor = PieceCompressor()
        let first = compressor.piece(Array("the same words, the same words".utf8))
        let again = compressor.piece(Array("the same words, the same words".utf8))
        #expect(first == again)
        var joiner = GzipJoiner()
        joiner.append(again)
        #expect(
            try Gzip.inflate(joiner.finished(), limits: limits)
                == Array("the same words, the same words".utf8))
    }

    @Test("is read by gunzip")
    func gunzip() throws {
        let (plain, packed) = joined()
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("joined-\(UUID().uuidString).gz")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(packed).write(to: file)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", file.path]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        expectSame([UInt8](output), plain)
    }
}
