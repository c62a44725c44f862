import MartletCore
import MartletProtocol

/// Answers devices that are far behind, reading the stored log where memory does not suffice, on
/// a connection of its own: beside the one writer, not in its way.
///
/// Confined to whoever holds it; blocks while it reads.
public final class LogReader {
    let feed: DataSetFeed
    let log: any LogSource
    private let check: any CheckSource

    /// - Parameter store: The data set's storage, for its place only; it is not touched.
    public convenience init(feed: DataSetFeed, store: EmbeddedStore) {
        self.init(
            feed: feed,
            log: EmbeddedLog(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable),
            check: EmbeddedCheck(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable))
    }

    /// - Parameters:
    ///   - log: The log the feed's node writes, on a connection that nobody else uses.
    ///   - check: Compares with the same data set.
    package init(feed: DataSetFeed, log: any LogSource, check: any CheckSource) {
        self.feed = feed
        self.log = log
        self.check = check
    }

    /// As `DataSetFeed.answer(to:)`; never `.needsLog`.
    public func answer(to admitted: AdmittedRequest) -> DataSetFeed.Outcome {
        feed.answer(to: admitted, log: log, check: check)
    }

    /// Steps of SQLite's machine that comparisons have taken since the last call.
    package func takeComparisonSteps() -> Int {
        (check as? EmbeddedCheck)?.takeVirtualMachineSteps() ?? 0
    }
}

@available(*, unavailable)
extension LogReader: Sendable {}
