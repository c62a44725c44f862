internal import MartletModel
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The outcome of installing a part, or a slice of it.
package struct InstalledPart: Sendable {
    package let report: RebaseReport
    /// The part's name.
    package let name: String
    /// The cursor at which the installation of this part continues; nil if it is complete.
    package let next: SnapshotCursor?
    /// Whether no part is missing now.
    package let isLast: Bool
}

extension DeviceStore {
    /// The missing parts of the snapshot that the device began with; nil if none is missing.
    package var pendingSnapshot: PendingSnapshot? {
        get throws { try PendingParts(store: applying).missing?.snapshot }
    }

    /// Whether part of a snapshot is still missing.
    package var isSeeding: Bool {
        get throws { try !PendingParts(store: applying).isEmpty }
    }

    /// Copies a snapshot's rows into a file that has none of them and nothing queued.
    package func begin(with path: String, now: Int64) throws {
        try withSnapshot(at: path) { snapshot in
            try inApplyingTransaction {
                try applying.setCapture(false)
                var applier = RemoteApplier(store: applying, registry: registry, now: now)
                try snapshot.add(
                    SnapshotSlice(allOf: snapshot.reader), .all, by: &applier)
                try SeededFile.stand(at: snapshot.description, on: applying.connection)
                try applying.setCapture(true)
            }
        }
    }

    /// Notes that only the first part of a snapshot is installed.
    package func beginWaiting(for manifest: SnapshotManifest) throws {
        try changeStanding {
            $0.missing = MissingParts(manifest.parts.dropFirst(), of: manifest)
        }
    }

    /// The path of the next missing part, if it has been fetched already: the first part, for a
    /// device that had a file; nil otherwise.
    package var fetchedPart: String? {
        get throws {
            guard let pending = try standing.installable, let part = pending.next,
                let reader = try? SnapshotReader(path: snapshotPath, vfs: vfs),
                (try? reader.expect(part.name, of: pending.manifest)) != nil
            else { return nil }
            return snapshotPath
        }
    }

    /// Removes the file of a part that was fetched. If that fails, the file only takes space on the
    /// disk.
    package func removeFetchedPart() {
        try? DatabaseFile.remove(snapshotPath, vfs: vfs)
    }

    /// Adds some rows of a part to the tables, under the own unconfirmed sets, in one transaction.
    ///
    /// The part counts as missing until all of it is added. A part that was interrupted is begun
    /// again; rows that the tables have already are skipped.
    /// - Parameters:
    ///   - path: A checked file.
    ///   - cursor: The start of the slice.
    ///   - limit: The most records of the part to look at.
    /// - Returns: Nil if the part is not missing any more, or the device has not yet reached the
    ///   part's revision; nothing was done then.
    /// - Throws: `SnapshotError` if the file is no sound snapshot, or another one than was
    ///   announced; `StoreError`, `SQLiteError`. Nothing was done then.
    package func installPart(
        at path: String, from cursor: SnapshotCursor, limit: Int, now: Int64
    ) throws -> InstalledPart? {
        try withSnapshot(at: path) { snapshot in
            try inMendingTransaction {
                let name = snapshot.description.part
                var standing = try standing
                guard let pending = standing.installable, pending.names.contains(name)
                else { return nil }
                let current = standing.revision
                try snapshot.reader.expect(name, of: pending.manifest)
                let slice = try SnapshotSlice(of: snapshot.reader, from: cursor, limit: limit)
                var sources = Rebase.DataSources()
                sources.part = (snapshot, slice)
                let report = try reconcile(
                    [], from: &standing, on: sources, reaching: current, now: now)
                observer?.applyingWillCommit(report)
                return InstalledPart(
                    report: report, name: name, next: slice.next,
                    isLast: standing.missing == nil)
            }
        }
    }

    /// Waits for the parts of another snapshot of the same data set, because the server no longer
    /// has those of the earlier one.
    /// - Throws: `SnapshotError` for a snapshot of another data set.
    package func replacePending(with manifest: SnapshotManifest) throws {
        try changeStanding { standing in
            guard standing.missing != nil else { return }
            let own = standing.dataSet ?? expectedDataSet
            guard own ?? manifest.dataSet == manifest.dataSet else {
                throw SnapshotError(
                    .other, "The server's snapshot is of another data set than this file.")
            }
            // Some rows may be in the tables already, and the records may belong to other parts.
            standing.missing = MissingParts(manifest.parts, of: manifest)
        }
    }
}
