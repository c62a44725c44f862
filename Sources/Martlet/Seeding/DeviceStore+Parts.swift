internal import MartletCore
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// What the installation of a part came to.
package struct InstalledPart: Sendable {
    package let report: RebaseReport
    /// The part's name.
    package let name: String
    /// Whether everything is here now.
    package let isLast: Bool
}

extension DeviceStore {
    /// What of the snapshot the device began with is still to come; nil where everything is here.
    package var pendingSnapshot: PendingSnapshot? {
        get throws { try PendingParts(store: applying).read() }
    }

    /// Whether part of a snapshot is still to come.
    var isSeeding: Bool {
        get throws { try !PendingParts(store: applying).isEmpty }
    }

    /// Copies a snapshot's rows into a file that has none of them and nothing queued.
    func begin(with path: String, now: Int64) throws {
        try withSnapshot(at: path) { snapshot in
            try inApplyingTransaction {
                try applying.setCapture(false)
                var applier = RemoteApplier(store: applying, registry: registry, now: now)
                try snapshot.add(.all, by: &applier)
                try SeededFile.stand(at: snapshot.description, on: applying.connection)
                try applying.setCapture(true)
            }
        }
    }

    /// Notes that the first part of a snapshot is all that is here.
    func beginWaiting(for manifest: SnapshotManifest) throws {
        try inApplyingTransaction { try PendingParts(store: applying).begin(manifest) }
    }

    /// Puts a part's rows in beside what is here, under the own unconfirmed sets, in one
    /// transaction.
    /// - Parameter path: A checked file.
    /// - Returns: Nil where the part is not waited for any more, or the device has not yet reached
    ///   the part's revision; nothing was done then.
    /// - Throws: `SnapshotError` for what is no sound snapshot, or another than was announced;
    ///   `StoreError`, `SQLiteError`. Nothing was done then.
    package func installPart(at path: String, now: Int64) throws -> InstalledPart? {
        try withSnapshot(at: path) { snapshot in
            try inApplyingTransaction {
                let name = snapshot.description.part
                guard let pending = try pendingSnapshot, pending.names.contains(name),
                    try revision >= pending.manifest.revision
                else { return nil }
                try snapshot.reader.expect(name, of: pending.manifest)
                var ground = Rebase.Ground()
                ground.part = snapshot
                let report = try reconcile(
                    [], from: revision, on: ground, reaching: revision, now: now)
                observer?.applyingWillCommit(report)
                return InstalledPart(
                    report: report, name: name, isLast: try pendingSnapshot == nil)
            }
        }
    }

    /// Waits for the parts of another snapshot of the same data set, because the server no longer
    /// has those waited for.
    /// - Throws: `SnapshotError` for one of another data set.
    package func replacePending(with manifest: SnapshotManifest) throws {
        try inApplyingTransaction {
            guard try isSeeding else { return }
            guard try dataSet == nil || dataSet == manifest.dataSet else {
                throw SnapshotError(
                    .other, "The server's snapshot is of another data set than this file.")
            }
            try PendingParts(store: applying).replace(with: manifest)
        }
    }
}
