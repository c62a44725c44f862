public import MartletProtocol

/// Tells whether something belongs to the history of a data set's file. Blocks; confined to whoever
/// holds it.
public final class LogHistory {
    private let log: EmbeddedLog

    /// - Parameter path: The data set's file.
    public init(path: String) {
        log = EmbeddedLog(path: path, vfs: nil)
    }

    /// Whether the entry of a revision has this chained hash. Where the file cannot be read, nothing
    /// is in it.
    public func has(_ revision: Revision, lineage: String) -> Bool {
        (try? log.hash(at: revision))??.text == lineage
    }
}

@available(*, unavailable)
extension LogHistory: Sendable {}
