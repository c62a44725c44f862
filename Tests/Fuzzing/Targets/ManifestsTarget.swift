import MartletModel
import MartletProtocol

/// The manifest of a snapshot, by which a device fetches files.
enum ManifestsTarget: FuzzTarget {
    static let name = "manifests"

    static func check(_ input: [UInt8]) throws {
        guard let manifest = try? SyncCoder.decodeSnapshotManifest(input) else { return }
        let again = try SyncCoder.decodeSnapshotManifest(SyncCoder.encode(manifest))
        try hold(again == manifest, "a manifest is the same when written and read again")
        for part in manifest.parts {
            for name in [part.name, part.hash] {
                try hold(
                    name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && !name.contains("/")
                        && !name.contains("."), "a part's name and hash lead out of no folder")
            }
            try hold(part.plain.bytes > 0, "a part has bytes")
        }
    }
}
