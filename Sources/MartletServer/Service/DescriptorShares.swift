internal import HTTPKit

/// Shares the files that a process may have open among connections and data sets, so that neither
/// takes too many.
struct DescriptorShares: Hashable, Sendable {
    /// The most files that a data set in use has open. The file, the write-ahead log and the shared
    /// memory count for the writer, the watch, readers of the log, comparisons and snapshots.
    static let filesPerDataSet = 10
    /// The number of other files: of the process, of tokens, of snapshots that are being sent, and
    /// of connections that are being refused.
    static let otherFiles = 168
    /// The least number of files that connections leave free, however few data sets are open.
    private static let leastOther = 256

    /// The number of files that the process may have open; nil if unknown.
    let limit: Int?

    /// Returns the number of files that connections have to leave free.
    static func other(openDataSets: Int) -> Int {
        max(leastOther, otherFiles + filesPerDataSet * openDataSets)
    }

    /// Returns the number of data sets that may be open: half of all files, or the files that
    /// connections leave, whichever is fewer.
    func dataSets(connections: Int) -> Int {
        guard let limit else { return .max }
        let free = min(limit / 2, limit - connections) - Self.otherFiles
        return max(4, free / Self.filesPerDataSet)
    }
}
