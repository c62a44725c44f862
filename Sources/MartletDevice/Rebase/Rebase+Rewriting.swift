internal import MartletStore

extension Rebase {
    /// Returns a set's changes with the ids assigned now, and with bases moved up to this device's
    /// own accepted sets. The bytes of a sent set stay frozen; only the stored rows change. An edit
    /// that is based on an older revision than the accepted set, because the device began again
    /// with an older snapshot, keeps its base.
    func rewritten(_ own: QueuedSet) throws -> [StoredChange] {
        var changes = try outbox.changes(of: own.sequence)
        guard !assigned.isEmpty || !ownRevisions.isEmpty else { return changes }
        let rewriter = IDRewriter(store: store, assigned: assigned)
        var isChanged = false
        for index in changes.indices {
            if try rewriter.rewrite(&changes[index]) { isChanged = true }
            let key = changes[index].key
            if let revision = ownRevisions[key], revision > changes[index].baseRevision,
                changes[index].baseRevision >= ownBases[key] ?? 0
            {
                changes[index].baseRevision = revision
                isChanged = true
            }
        }
        if isChanged {
            try outbox.clear(own.sequence)
            for change in changes {
                try outbox.insertChange(change, sequence: own.sequence)
                try outbox.noteReferences(of: change, sequence: own.sequence)
            }
        }
        return changes
    }
}
