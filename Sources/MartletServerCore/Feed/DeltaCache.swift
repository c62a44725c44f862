package import MartletModel
internal import MartletProtocol
import Synchronization

/// The newest entries as deltas, encoded once for all listeners.
final class DeltaCache: Sendable {
    /// The parameters that determine the content of a batch.
    struct Key: Equatable {
        let since: Revision
        let head: LogHead
        let byteLimit: Int
    }

    private struct State {
        /// The deltas by the chained hash after the entry, which identifies a history and not only
        /// a revision.
        var pieces: [LineageHash: [UInt8]] = [:]
        var order: [LineageHash] = []
        var bytes = 0
        /// The batch that was made last. All listeners that are up to date ask for the same one.
        var last: (key: Key, batch: DeltaBatchBytes)?
    }

    private let byteLimit: Int
    private let state = Mutex(State())

    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// Returns an entry as deltas; nil if the cache does not have it.
    func piece(of entry: LogEntry) -> [UInt8]? {
        state.withLock { $0.pieces[entry.hash] }
    }

    func keep(_ piece: [UInt8], of entry: LogEntry) {
        state.withLock { state in
            guard state.pieces[entry.hash] == nil, piece.count < byteLimit / 4 else { return }
            state.pieces[entry.hash] = piece
            state.order.append(entry.hash)
            state.bytes += piece.count
            while state.bytes > byteLimit, let oldest = state.order.first {
                state.order.removeFirst()
                state.bytes -= state.pieces.removeValue(forKey: oldest)?.count ?? 0
            }
        }
    }

    func batch(for key: Key) -> DeltaBatchBytes? {
        state.withLock { state in
            guard let last = state.last, last.key == key else { return nil }
            return last.batch
        }
    }

    func keep(_ batch: DeltaBatchBytes, for key: Key) {
        state.withLock { $0.last = (key, batch) }
    }

    func clear() {
        state.withLock { $0 = State() }
    }
}

/// An encoded batch of deltas.
package struct DeltaBatchBytes: Sendable {
    /// The JSON.
    package let json: [UInt8]
    /// The listener's cursor after the batch.
    package let nextVersion: Revision
    /// The cursor at which a stream continues after the batch. It is `nextVersion`, except for a
    /// listener that is told to fetch the changes in between.
    package let position: Revision
    /// True if the batch has no news.
    package let isEmpty: Bool
    /// True if more can be had at once.
    package let more: Bool
    /// True if the batch has rows in place of entries. Only the last such batch, without `more`,
    /// brings the listener to a state of the data set. After one with `more`, the listener must ask
    /// for rows again.
    package let isDifference: Bool
    /// True if the batch tells the listener to fetch the changes with an exchange.
    package let isBehind: Bool
    /// The last row, if its revision has more rows.
    var cursor: RowCursor?
    /// True if the listener's user does not see everything.
    var isPart = false
    /// The revision up to which an empty batch knows that there is nothing for the listener; 0 for its
    /// position.
    var known: Revision = 0
    /// True if it is noted which changes concern the listener's user.
    var isTracked = false
    /// The devices whose sets are in the batch. They get these sets in their author's format.
    let devices: Set<Int64>
}
