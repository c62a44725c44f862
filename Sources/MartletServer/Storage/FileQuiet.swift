internal import Synchronization
internal import SystemKit

/// Tells whether a data set's file may have been written to, without opening it. It reads the stamp
/// of the write-ahead log, to which every commit goes while a server has the file open.
final class FileQuiet: Sendable {
    private struct State {
        var stamp: FileStamp?
        var isKnown = false
        /// The number of further calls for which the file counts as written to, even if its stamp
        /// stays the same.
        var looks = 0
    }

    /// The number of looks after a change of the stamp. The clock of a file system may have ticks
    /// of up to a second, and a second write within one tick does not show.
    private static let looksAfterChange = 20

    private let path: String
    private let state = Mutex(State())

    /// Makes a check, which reads nothing yet.
    ///
    /// - Parameter path: The data set's file.
    init(path: String) {
        self.path = path + "-wal"
    }

    /// Returns whether nothing was written since the last call.
    func isQuiet() -> Bool {
        let found = FileStamp(path: path)
        return state.withLock { state in
            if found != state.stamp || !state.isKnown {
                state.stamp = found
                state.isKnown = true
                state.looks = Self.looksAfterChange
            }
            guard state.looks > 0 else { return true }
            state.looks -= 1
            return false
        }
    }
}
