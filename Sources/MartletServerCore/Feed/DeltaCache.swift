public import MartletModel
internal import MartletProtocol
import Synchronization

/// The newest entries as deltas, encoded once for all who listen.
final class DeltaCache: Sendable {
    /// What decides what a batch holds.
    struct Place: Equatable {
        let since: Revision
        let head: LogHead
        let byteLimit: Int
    }

    private struct State {
        /// By the chained hash after the entry: that of a history, not only of a place in it.
        var pieces: [LineageHash: [UInt8]] = [:]
        var order: [LineageHash] = []
        var bytes = 0
        /// The batch made last: listeners that are up to date all ask for the same one.
        var last: (place: Place, batch: DeltaBatchBytes)?
    }

    private let byteLimit: Int
    private let state = Mutex(State())

    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    /// An entry as deltas; nil where it is not held.
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

    func batch(at place: Place) -> DeltaBatchBytes? {
        state.withLock { state in
            guard let last = state.last, last.place == place else { return nil }
            return last.batch
        }
    }

    func keep(_ batch: DeltaBatchBytes, at place: Place) {
        state.withLock { $0.last = (place, batch) }
    }

    func clear() {
        state.withLock { $0 = State() }
    }
}

/// A batch of deltas, encoded.
public struct DeltaBatchBytes: Sendable {
    /// The JSON.
    public let json: [UInt8]
    /// The cursor once it is applied.
    public let nextVersion: Revision
    /// Where a stream goes on behind it: `nextVersion`, but for a listener that is told to fetch
    /// what is before.
    public let position: Revision
    /// Whether it says nothing.
    public let isEmpty: Bool
    /// Whether there is more to be had at once.
    public let more: Bool
    /// Whether rows stand in place of entries: then only a batch without `more` leads to a state
    /// of the data set, and what follows one with it has to be asked for as rows.
    public let isDifference: Bool
    /// Whether it says that the listener is behind what the log holds.
    public let isBehind: Bool
    /// The last row, if its revision has more rows.
    var cursor: RowCursor?
    /// The devices whose sets are in it: they get these in their own form.
    let devices: Set<Int64>
}
