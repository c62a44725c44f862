internal import MartletModel
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// A snapshot that the device has only partly installed.
package struct PendingSnapshot: Hashable, Sendable {
    /// All parts, including those that are installed.
    package let manifest: SnapshotManifest
    /// The names of the missing parts.
    package let names: Set<String>

    /// The part to fetch next.
    package var next: SnapshotManifest.Part? {
        manifest.parts.first { names.contains($0.name) }
    }
}

/// The missing parts of a snapshot, as the device's file lists them; there is at least one.
///
/// The device began with the first part. It has everything that changed since that part's revision,
/// as whole rows. The other records did not change since; the other parts hold them. A row of a
/// part is therefore added only if the device knows nothing newer of its record: the tables have no
/// such record, and no newer change of it has passed by.
struct MissingParts: Hashable, Sendable {
    private(set) var names: Set<String>
    /// The manifest of the snapshot; nil if the file has lost it, so that no part can be fetched.
    let manifest: SnapshotManifest?

    /// Creates the list of some parts of a snapshot; nil if there are none.
    init?(_ parts: some Sequence<SnapshotManifest.Part>, of manifest: SnapshotManifest) {
        names = Set(parts.map(\.name))
        self.manifest = manifest
        if names.isEmpty { return nil }
    }

    /// Reads the list.
    /// - Parameters:
    ///   - names: The names, one a line; nil if no part is missing.
    ///   - manifest: The manifest as JSON.
    /// - Throws: `WireFault` if the manifest cannot be read.
    init?(names: String?, manifest: String?) throws {
        guard let names else { return nil }
        self.names = Set(names.split(separator: "\n").map(String.init))
        self.manifest = try manifest.map { try SyncCoder.decodeSnapshotManifest(Array($0.utf8)) }
    }

    /// The snapshot that the parts belong to.
    var snapshot: PendingSnapshot? {
        manifest.map { PendingSnapshot(manifest: $0, names: names) }
    }

    /// Returns the list without a part that is installed; nil if no other is missing.
    func without(_ name: String) -> MissingParts? {
        var rest = self
        rest.names.remove(name)
        return rest.names.isEmpty ? nil : rest
    }
}

/// The parts of a snapshot that the device's file still waits for, and the records that passed by
/// meanwhile.
struct PendingParts {
    let store: LocalStore

    /// The keys in `martlet_state` of the two forms that `MissingParts` reads.
    static let names = "seedingParts"
    static let manifest = "seedingManifest"

    /// Whether no part is missing.
    var isEmpty: Bool {
        get throws { try store.textState(Self.names) == nil }
    }

    /// The missing parts; nil if there are none.
    var missing: MissingParts? {
        get throws {
            try MissingParts(
                names: store.textState(Self.names), manifest: store.textState(Self.manifest))
        }
    }

    /// Forgets the records that passed by, because no part is missing any more.
    func forgetPassed() throws {
        try store.connection.run("DELETE FROM martlet_passed")
    }

    /// Remembers records of which the device has received something newer than a part, if the
    /// tables do not show it: the records were deleted, or they have a handler and no table.
    func pass(_ type: String, _ ids: some Sequence<RecordID>) throws {
        for id in ids {
            let row = try store.connection.statement(
                "INSERT OR IGNORE INTO martlet_passed(type, id) VALUES (?, ?)")
            row.bind(1, text: type)
            row.bind(2, id)
            try row.run()
        }
    }
}
