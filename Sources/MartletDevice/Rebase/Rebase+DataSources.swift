internal import MartletModel
internal import MartletProtocol
internal import MartletStore

extension Rebase {
    /// The data to put in place before an answer's sets are applied.
    struct DataSources {
        /// Whether parts are staged, which come first.
        var hasStaged = false
        /// The identifiers of own sets among the staged ones.
        var identifiers: [String] = []
        /// The snapshot to begin with in place of all rows, before everything else. All of its
        /// parts are still missing.
        var manifest: SnapshotManifest?
        /// Some records of a part of the snapshot with which the device began. Those that the
        /// tables lack are added first.
        var part: (rows: SnapshotRows, slice: SnapshotSlice)?
        /// See `RemoteApplier.ApplyMode`.
        var isLenient = false

        /// Whether nothing was staged.
        var isEmpty: Bool { !hasStaged && manifest == nil }
    }

    /// Notes that a set is newer than the missing parts. Own sets from before the snapshot may
    /// arrive too, with their verdicts; the parts contain their effects.
    func pass(_ set: ChangeSet, revision: Revision) throws {
        guard let waiting = missing?.manifest?.revision, revision > waiting else { return }
        let parts = PendingParts(store: store)
        for changes in set.types {
            try parts.pass(changes.name, changes.delete)
            // If a type has a handler and no table, no row shows what the handler received.
            guard store.schema.index(of: changes.name) == nil,
                applier.registry[changes.name] != nil
            else { continue }
            try parts.pass(changes.name, changes.entries.map(\.id))
        }
    }
}
