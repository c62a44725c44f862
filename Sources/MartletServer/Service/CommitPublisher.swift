internal import Dispatch
internal import MartletModel
internal import MartletProtocol
internal import MartletRedis
internal import MartletServerCore
internal import SystemKit

/// Tells everyone that a data set has moved on: who listens, who makes snapshots, and, of what this
/// process has committed, the other processes.
struct CommitPublisher: Sendable {
    let feed: DataSetFeed
    let signal: RevisionSignal
    let snapshots: SnapshotService
    /// What tells other processes; nil where there is no Redis.
    let outlet: Confined<CommitOutlet>?
    /// Beside the writer: waking a thousand listeners takes a while, and those whose sets were
    /// decided come first.
    let notices: DispatchQueue

    /// The log is another one than it was, such as after its database was restored.
    func restarted(at revision: Revision) {
        notices.async { [signal] in signal.restart(at: revision) }
    }

    /// - Parameter isOurs: Whether this process has committed it.
    func reached(_ revision: Revision, isOurs: Bool) {
        notices.async { [signal] in signal.advance(to: revision) }
        snapshots.reached(revision, bytes: feed.loggedBytes)
        guard isOurs, let outlet else { return }
        outlet.queue.async {
            // Where it is gone, the server stops.
            try? outlet.here { $0.reached(revision) }
        }
    }
}
