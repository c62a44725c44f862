import SQLiteRecords
import Testing

@Suite("XXH64")
struct XXH64Tests {
    /// The bytes the algorithm's own self-test hashes.
    static let sanity: [UInt8] = {
        var generator: UInt64 = 2_654_435_761
        return (0..<222).map { _ in
            defer { generator = generator &* 11_400_714_785_074_694_797 }
            return UInt8(truncatingIfNeeded: generator >> 56)
        }
    }()

    @Test(
        "texts have the published hashes",
        arguments: [
            ("", 0xef46_db37_51d8_e999), ("a", 0xd24e_c4f1_a98c_6e5b),
            ("abc", 0x44bc_2cf5_ad77_0999),
        ] as [(String, UInt64)])
    func textsHashed(text: String, hash: UInt64) {
        #expect(XXH64.hash(Array(text.utf8)) == hash)
    }

    @Test(
        "the bytes of the self-test have the published hashes, with and without a seed",
        arguments: [
            (0, 0xef46_db37_51d8_e999, 0xac75_fda2_929b_17ef),
            (1, 0xe934_a84a_db05_2768, 0x5014_6076_43a9_b4c3),
            (4, 0x9136_a0dc_a574_57ee, 0xcaab_286b_d8e9_fdb5),
            (14, 0x8282_dcc4_994e_35c8, 0xc3bd_6bf6_3deb_6df0),
            (31, 0x299b_39a2_90e6_d783, 0xda67_3d5f_eb5c_1d79),
            (32, 0x18b2_1649_2bb4_4b70, 0xb3f3_3bdf_93ad_e409),
            (33, 0x55c8_dc3e_578f_5b59, 0xe92c_292f_64bc_3071),
            (101, 0xa51e_a210_1b2d_114c, 0x6b38_a5bb_ba1f_049c),
            (222, 0xb641_ae8c_b691_c174, 0x20cb_8ab7_ae10_c14a),
        ] as [(Int, UInt64, UInt64)])
    func vectors(count: Int, plain: UInt64, seeded: UInt64) {
        let bytes = Array(Self.sanity[..<count])
        #expect(XXH64.hash(bytes) == plain)
        #expect(XXH64.hash(bytes, seed: 2_654_435_761) == seeded)
    }

    @Test("bytes that come in pieces hash as the whole does", arguments: [1, 3, 31, 32, 33, 64])
    func piecesOfHash(size: Int) {
        var stream = XXH64(seed: 7)
        for start in stride(from: 0, to: Self.sanity.count, by: size) {
            #expect(stream.finished() == XXH64.hash(Array(Self.sanity[..<start]), seed: 7))
            stream.update(Array(Self.sanity[start..<min(start + size, Self.sanity.count)]))
            stream.update([])
        }
        #expect(stream.finished() == XXH64.hash(Self.sanity, seed: 7))
    }
}
