internal import MartletModel
package import MartletProtocol

/// Answers devices that are far behind. It reads the stored log if memory does not have all
/// entries, on a connection of its own, and so does not delay the writer. If other processes write
/// to the log too, it also brings memory up to their entries.
///
/// It is confined to the queue of its holder, and blocks while it reads.
package final class LogReader {
    let feed: DataSetFeed
    let log: any LogSource
    private let check: any CheckSource

    /// Makes a reader.
    ///
    /// - Parameters:
    ///   - log: The log that the feed's node writes, on a connection that nothing else uses.
    ///   - check: Compares records with the same data set.
    ///   - consistently: Makes the data set's writer take the external writes in.
    package init(
        feed: DataSetFeed, log: any LogSource, check: any CheckSource,
        consistently: ConsistentReading? = nil
    ) {
        self.feed = feed
        self.log = log
        self.check = check
        log.consistently = consistently
        check.consistently = consistently
    }

    /// Answers like `DataSetFeed.answer(to:)`, but never with `.needsLog`.
    package func answer(to admitted: AdmittedRequest) -> DataSetFeed.Outcome {
        let outcome = feed.answer(to: admitted, log: log, check: check)
        guard case .problem(let problem) = outcome, feed.isShared,
            RequestCheck.isOfHistory(problem)
        else { return outcome }
        do throws(StorageFault) {
            _ = try catchUp()
        } catch {
            return .problem(RequestCheck.problem(for: error))
        }
        return feed.answer(to: admitted, log: log, check: check)
    }

    /// Finishes an answer that the node began.
    package func answer(_ unread: UnreadAnswer) -> Result<PreparedAnswer, Problem> {
        unread.answer(from: feed.builder(log: log))
    }

    /// Answers like `DataSetFeed.deltas(_:)`, but never with `.needsLog`.
    package func deltas(_ request: DeltaRequest) -> DataSetFeed.DeltaOutcome {
        let outcome = feed.deltas(request, log: log)
        guard case .problem(let problem) = outcome, feed.isShared,
            RequestCheck.isOfHistory(problem)
        else { return outcome }
        do throws(StorageFault) {
            _ = try catchUp()
        } catch {
            return .problem(RequestCheck.problem(for: error))
        }
        return feed.deltas(request, log: log)
    }

    /// Brings the feed up to the stored log: with the entries that it lacks or, if there are many
    /// or the log is a different one, with the log's end only.
    ///
    /// It may be called at any time, also while the node writes. If there is nothing new, it costs
    /// one small query.
    ///
    /// - Returns: The log's end, as the feed then knows it.
    /// - Throws: `StorageFault` if the log cannot be read.
    @discardableResult
    package func catchUp() throws(StorageFault) -> LogHead {
        // Memory is read before the log: its entries were committed then.
        let version = feed.cache.version
        let extent = try log.extent()
        try feed.follow(
            to: extent.head, floor: extent.floor, from: version, log: log, maxBytes: 16 << 20)
        return feed.head
    }

    /// Returns the same as `CheckSource.takeSteps()`.
    package func takeComparisonSteps() -> Int { check.takeSteps() }
}

@available(*, unavailable)
extension LogReader: Sendable {}
