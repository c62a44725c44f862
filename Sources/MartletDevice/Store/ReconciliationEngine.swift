public import MartletModel
public import MartletProtocol

/// Applies remote change to a device's file. The client has its own engine; a test can wrap it or
/// replace it (`ClientOptions.engine`).
///
/// The client calls it on the device's queue, with one batch at a time.
///
/// ```swift
/// final class IdleEngine: ReconciliationEngine {
///     func apply(_ batch: RemoteBatch) throws -> Reconciliation { .leftOut }
/// }
/// ```
public protocol ReconciliationEngine: AnyObject {
    /// Applies a batch, with the revision that it leads to, in one transaction.
    ///
    /// Changes at or below the device's revision are skipped; the revision never goes back.
    /// - Throws: `StoreError` `.inconsistent` for a batch that cannot be applied: the client
    ///   fetches it once more, then as rows. Any other error is a failure of the file, and the
    ///   client tries again later. Nothing is applied then.
    func apply(_ batch: RemoteBatch) throws -> Reconciliation
}

/// A batch of remote change that is applied in one transaction.
public struct RemoteBatch: Sendable {
    /// The source of remote change.
    public enum Source: String, Hashable, Sendable {
        /// The answer to a request, or a slice of it.
        case exchange
        /// The live connection.
        case stream
        /// A part of a snapshot, or a slice of it.
        case snapshot
    }

    enum Content {
        case sets(
            ArraySlice<ChangeSet>, lineage: String?, end: HistoryMark?, dataSet: String?,
            owner: String)
        case deltas(DeltaBatch)
        case part(path: String, from: SnapshotCursor, limit: Int)
    }

    /// The source of the batch.
    public let source: Source
    /// The device's revision afterwards; nil for parts of a snapshot, which do not change it.
    public let reaching: Revision?
    let content: Content
    /// Milliseconds since 1970.
    let now: Int64

    /// The change sets, if the batch comes from an exchange; empty otherwise.
    public var changeSets: [ChangeSet] {
        if case .sets(let sets, _, _, _, _) = content { Array(sets) } else { [] }
    }

    /// The deltas, if the batch comes from the live connection; nil otherwise.
    public var deltas: DeltaBatch? {
        if case .deltas(let batch) = content { batch } else { nil }
    }

    init(
        _ sets: ArraySlice<ChangeSet>, reaching: Revision, lineage: String?,
        before end: HistoryMark? = nil, dataSet: String?, owner: String, now: Int64
    ) {
        source = .exchange
        self.reaching = reaching
        content = .sets(sets, lineage: lineage, end: end, dataSet: dataSet, owner: owner)
        self.now = now
    }

    init(_ batch: DeltaBatch, now: Int64) {
        source = .stream
        reaching = batch.nextVersion
        content = .deltas(batch)
        self.now = now
    }

    init(partAt path: String, from cursor: SnapshotCursor, limit: Int, now: Int64) {
        source = .snapshot
        reaching = nil
        content = .part(path: path, from: cursor, limit: limit)
        self.now = now
    }
}

/// The outcome of a batch.
public struct Reconciliation: Sendable {
    enum Outcome {
        case applied(RebaseReport)
        case installed(InstalledPart)
        /// The device has all deltas of the batch already; their number.
        case old(deltas: Int)
        /// A change before the batch is missing; an exchange fetches it.
        case needsExchange
        /// The file has changed since the device asked for the batch.
        case outdated
    }

    let outcome: Outcome

    init(_ outcome: Outcome) {
        self.outcome = outcome
    }

    /// The result for a batch that was not applied this time. A test's own engine may return it.
    public static let leftOut = Reconciliation(.outdated)

    /// Whether anything was applied.
    public var isApplied: Bool {
        switch outcome {
        case .applied, .installed: true
        case .old, .needsExchange, .outdated: false
        }
    }

    /// The number of records of other devices in the batch.
    public var remoteRecords: Int {
        switch outcome {
        case .applied(let report): report.remoteRecords
        case .installed(let part): part.report.remoteRecords
        case .old, .needsExchange, .outdated: 0
        }
    }
}

/// The client's own engine, which writes to the tables of a device's file.
package final class StoreEngine: ReconciliationEngine {
    private let store: DeviceStore

    package init(store: DeviceStore) {
        self.store = store
    }

    package func apply(_ batch: RemoteBatch) throws -> Reconciliation {
        switch batch.content {
        case .sets(let sets, let lineage, let end, let dataSet, let owner):
            let report = try store.apply(
                sets, reaching: batch.reaching ?? 0, lineage: lineage, before: end,
                dataSet: dataSet, owner: owner, now: batch.now)
            return Reconciliation(report.map { .applied($0) } ?? .outdated)
        case .deltas(let deltas):
            switch try store.apply(deltas, now: batch.now) {
            case .applied(let report, _): return Reconciliation(.applied(report))
            case .old(let count): return Reconciliation(.old(deltas: count))
            case .needsExchange: return Reconciliation(.needsExchange)
            }
        case .part(let path, let cursor, let limit):
            let part = try store.installPart(
                at: path, from: cursor, limit: limit, now: batch.now)
            return Reconciliation(part.map { .installed($0) } ?? .outdated)
        }
    }
}
