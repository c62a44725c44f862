internal import Dispatch
internal import MartletModel
internal import MartletProtocol
internal import MartletRedis
internal import MartletServerCore
internal import SystemKit

/// Announces new revisions of a data set: to listeners, to the maker of snapshots, and, for commits
/// of this process, to the other processes.
struct CommitPublisher: Sendable {
    let feed: DataSetFeed
    let signal: RevisionSignal
    let snapshots: SnapshotService
    /// The connection that informs other processes; nil without Redis.
    let outlet: Confined<CommitOutlet>?
    /// The queue that wakes listeners, apart from the writer. To wake a thousand takes a while, and
    /// devices that wait for a verdict come first.
    let notices: DispatchQueue

    /// Announces a log that replaced the former one, such as after its database was restored.
    func restarted(at revision: Revision) {
        notices.async { [signal] in signal.restart(at: revision) }
    }

    /// Announces a new revision.
    ///
    /// - Parameter isOurs: True if this process has committed it.
    func reached(_ revision: Revision, isOurs: Bool) {
        notices.async { [signal, feed] in
            signal.advance(to: revision) { feed.views.concerned(after: $0, through: revision) }
        }
        snapshots.reached(revision, bytes: feed.loggedBytes)
        guard isOurs, let outlet else { return }
        outlet.queue.async {
            // The outlet is gone only if the server stops.
            try? outlet.here { $0.reached(revision) }
        }
    }
}
