internal import MartletStore

extension Rebase {
    /// A set's changes with the ids assigned now, and with bases moved up to this device's own
    /// accepted sets. What was sent stays frozen; only the rows beside it follow. An edit made on less
    /// than the accepted set knew, after a new beginning from an older snapshot, stays where it was.
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
