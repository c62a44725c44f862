import CompressionKit
import Foundation
import MartletModel
import MartletProtocol
import Testing

@testable import Martlet

@Suite("The form of a request's body")
struct SentBodyTests {
    /// Returns the body as a server reads it; nil if the server refuses it.
    private func taken(_ sent: SentBody) -> [UInt8]? {
        guard sent.bytes.count <= Limits.requestBytes else { return nil }
        guard sent.isGzip else { return sent.bytes }
        return try? Gzip.inflate(
            sent.bytes, limit: Limits.inflatedBytes, ratio: Limits.inflationRatio,
            ratioFloor: Limits.inflationRatioFloor)
    }

    private static let most = Limits.savedSetBytes + Limits.requestHeadBytes

    @Test(
        "a server takes it however well or badly it compresses",
        arguments: [0, 1_023, 1_024, 100_000, 4 << 20, most])
    func takenBodies(count: Int) {
        let same = [UInt8](repeating: UInt8(ascii: "x"), count: count)
        #expect(taken(SentBody(same)) == same)
        var state: UInt64 = 42
        let random = (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        #expect(taken(SentBody(random)) == random)
    }

    @Test("what shrinks by less than a crafted body is compressed")
    func compressed() {
        let lines = (0..<5_000).map { "{\"name\":\"Team \($0 * 7)\"}" }
        #expect(SentBody(Array(lines.joined().utf8)).isGzip)
        #expect(!SentBody(Array("short".utf8)).isGzip)
    }
}
