internal import CompressionKit
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

/// A snapshot as a server stores it: the manifest, and the files as they are sent.
struct SimulatedSnapshot {
    let manifest: SnapshotManifest
    /// The files by the name of the part, each a gzip member.
    let files: [String: [UInt8]]
    /// The records that it was made for, if it is one of a view.
    var sight: SimulatedRights.Sight?

    /// - Parameter contents: Returns the content of a part's file, by its path.
    init(_ cut: SnapshotMaker.Cut, contents: (String) -> [UInt8]?) {
        var parts: [SnapshotManifest.Part] = []
        var files: [String: [UInt8]] = [:]
        for part in cut.parts {
            let plain = contents(part.path) ?? []
            let packed = Gzip.compress(plain)
            files[part.name] = packed
            // There is no address, because files are requested by name here.
            parts.append(
                SnapshotManifest.Part(
                    name: part.name, hash: String(repeating: "0", count: 64),
                    plain: Self.sum(plain),
                    types: part.records.map { .init(name: $0.type, records: $0.count) },
                    codings: [.init(name: "gzip", sum: Self.sum(packed))]))
        }
        var manifest = SnapshotManifest(
            format: 1, dataSet: cut.dataSet, revision: cut.revision, lineage: cut.lineage,
            schema: cut.schema, parts: parts)
        manifest.view = cut.view
        self.manifest = manifest
        self.files = files
    }

    private static func sum(_ bytes: [UInt8]) -> SnapshotManifest.Sum {
        var checksum = CRC32()
        checksum.update(bytes)
        return SnapshotManifest.Sum(bytes: Int64(bytes.count), crc32: checksum.value)
    }
}
