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
    package fileprivate(set) var names: Set<String>

    /// The part to fetch next.
    package var next: SnapshotManifest.Part? {
        manifest.parts.first { names.contains($0.name) }
    }
}

/// The missing parts of a snapshot, as the device's file lists them.
///
/// The device began with the first part. It has everything that changed since that part's revision,
/// as whole rows. The other records did not change since; the other parts hold them. A row of a
/// part is therefore added only if the device knows nothing newer of its record: the tables have no
/// such record, and no newer change of it has passed by.
struct PendingParts {
    let store: LocalStore

    private static let manifest = "seedingManifest"
    /// The key of the names, one a line; the value is null if no part is missing.
    private static let names = "seedingParts"

    var isEmpty: Bool {
        get throws { try store.textState(Self.names) == nil }
    }

    /// The revision of the missing parts; nil if none is missing.
    var revision: Revision? {
        get throws { try read()?.manifest.revision }
    }

    func read() throws -> PendingSnapshot? {
        guard let names = try store.textState(Self.names),
            let text = try store.textState(Self.manifest)
        else { return nil }
        return PendingSnapshot(
            manifest: try SyncCoder.decodeSnapshotManifest(Array(text.utf8)),
            names: Set(names.split(separator: "\n").map(String.init)))
    }

    /// Notes that only the first part of a snapshot is installed.
    func begin(_ manifest: SnapshotManifest) throws {
        try clear()
        try wait(for: manifest, manifest.parts.dropFirst().map(\.name))
    }

    /// Waits for all parts of a snapshot. It is called if none of them has been added, or if the
    /// server no longer has the parts of the earlier snapshot. In the second case, some rows may be
    /// in the tables already, and the records may belong to other parts now.
    func replace(with manifest: SnapshotManifest) throws {
        try wait(for: manifest, manifest.parts.map(\.name))
    }

    /// Notes that a part is installed.
    func complete(_ name: String) throws {
        guard var pending = try read() else { return }
        pending.names.remove(name)
        try wait(for: pending.manifest, pending.names.sorted())
    }

    private func wait(for manifest: SnapshotManifest, _ names: [String]) throws {
        guard !names.isEmpty else { return try clear() }
        let text = String(decoding: SyncCoder.encode(manifest), as: UTF8.self)
        try store.setState(Self.manifest, .text(text))
        try store.setState(Self.names, .text(names.joined(separator: "\n")))
    }

    /// Notes that no part is missing.
    func clear() throws {
        guard try !isEmpty else { return }
        try store.setState(Self.manifest, .null)
        try store.setState(Self.names, .null)
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
