internal import MartletModel
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// A snapshot of which not every part is here.
package struct PendingSnapshot: Hashable, Sendable {
    /// All parts, those that are here too.
    package let manifest: SnapshotManifest
    /// The names of those to come.
    package fileprivate(set) var names: Set<String>

    /// The part to fetch next.
    package var next: SnapshotManifest.Part? {
        manifest.parts.first { names.contains($0.name) }
    }
}

/// Which parts of a snapshot are still to come, as the device's file tells.
///
/// The device began with the first part. Everything that changed since that part's revision is
/// here, as whole rows; what is missing did not change since, and comes with the other parts. A
/// part's row is therefore put in only where nothing newer is known of its record: where there is
/// none here, and none has passed by.
struct PendingParts {
    let store: LocalStore

    private static let manifest = "seedingManifest"
    /// The names, one a line; null: everything is here.
    private static let names = "seedingParts"

    var isEmpty: Bool {
        get throws { try store.textState(Self.names) == nil }
    }

    /// The revision of the parts that are to come; nil where everything is here.
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

    /// Notes that a snapshot's first part is all there is here.
    func begin(_ manifest: SnapshotManifest) throws {
        try clear()
        try wait(for: manifest, manifest.parts.dropFirst().map(\.name))
    }

    /// Waits for all parts of a snapshot. Either none of them has been added, or the server no
    /// longer has those of the earlier snapshot; then some of its rows may be in the tables, and
    /// the records may belong to other parts now.
    func replace(with manifest: SnapshotManifest) throws {
        try wait(for: manifest, manifest.parts.map(\.name))
    }

    /// Notes that a part is here.
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

    /// Notes that nothing is to come.
    func clear() throws {
        guard try !isEmpty else { return }
        try store.setState(Self.manifest, .null)
        try store.setState(Self.names, .null)
        try store.connection.run("DELETE FROM martlet_passed")
    }

    /// Remembers records of which something newer than a part has come and left nothing behind
    /// that would show it: they are gone, or a handler has them and no table.
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
