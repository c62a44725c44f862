import Foundation
import MartletModel
import MartletProtocol
import Testing

@Suite("Snapshot manifests")
struct SnapshotManifestTests {
    private static let hash = String(repeating: "0f", count: 32)

    private let manifest = SnapshotManifest(
        format: 1, dataSet: "9f2c", revision: 1_002, lineage: "80cd", schema: "51d0",
        parts: [
            .init(
                name: "first", hash: hash, plain: .init(bytes: 8_192, crc32: .max),
                types: [.init(name: "teams", records: 12)],
                codings: [.init(name: "gzip", sum: .init(bytes: 900, crc32: 7))]),
            .init(
                name: "rest", hash: hash, plain: .init(bytes: 4_096, crc32: 0), types: [],
                codings: []),
        ])

    @Test("is written as the documentation says, and read back")
    func roundTripOfManifest() throws {
        let bytes = SyncCoder.encode(manifest)
        #expect(
            String(decoding: bytes, as: UTF8.self) == """
                {"format":1,"dataSet":"9f2c","revision":1002,"lineage":"80cd","schema":"51d0",\
                "parts":[{"name":"first","hash":"\(Self.hash)","bytes":8192,"crc32":4294967295,\
                "types":{"teams":12},"codings":{"gzip":{"bytes":900,"crc32":7}}},\
                {"name":"rest","hash":"\(Self.hash)","bytes":4096,"crc32":0,"types":{},\
                "codings":{}}]}
                """)
        #expect(try SyncCoder.decodeSnapshotManifest(bytes) == manifest)
    }

    @Test(
        "what cannot be is refused",
        arguments: [
            ("\"first\"", "\"../first\""), ("\"first\"", "\"\""), ("\"first\"", "\"rest\""),
            ("0f0f", "0F0F"), ("0f0f", "0f0"), ("8192", "-8192"), ("8192", "0"),
            ("4294967295", "4294967296"), ("\"teams\":12", "\"teams\":-12"),
            ("\"bytes\":900,", ""), ("\"revision\":1002,", ""), ("\"9f2c\"", "7"),
            ("]}", "]"), ("\"teams\":12", "\"teams\":12,\"teams\":12"),
        ])
    func refusedManifest(part: String, spoiled: String) {
        let text = String(decoding: SyncCoder.encode(manifest), as: UTF8.self)
        guard let range = text.range(of: part) else {
            Issue.record("“\(part)” is not in the manifest")
            return
        }
        let bytes = [UInt8](text.replacingCharacters(in: range, with: spoiled).utf8)
        #expect(throws: WireFault.self) { try SyncCoder.decodeSnapshotManifest(bytes) }
    }
}
