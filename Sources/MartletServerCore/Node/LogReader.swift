internal import MartletModel
public import MartletProtocol

/// Answers devices that are far behind, reading the stored log where memory does not suffice, on
/// a connection of its own: beside the one writer, not in its way. Where other processes write to
/// the log too, it also brings memory up to what they wrote.
///
/// Confined to whoever holds it; blocks while it reads.
public final class LogReader {
    let feed: DataSetFeed
    let log: any LogSource
    private let check: any CheckSource

    /// - Parameters:
    ///   - log: The log the feed's node writes, on a connection that nobody else uses.
    ///   - check: Compares with the same data set.
    ///   - consistently: Has the data set's writer take in what other programs wrote.
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

    /// As `DataSetFeed.answer(to:)`; never `.needsLog`.
    public func answer(to admitted: AdmittedRequest) -> DataSetFeed.Outcome {
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
    public func answer(_ unread: UnreadAnswer) -> Result<PreparedAnswer, Problem> {
        unread.answer(from: feed.builder(log: log))
    }

    /// As `DataSetFeed.deltas(_:)`; never `.needsLog`.
    public func deltas(_ question: DeltaRequest) -> DataSetFeed.DeltaOutcome {
        let outcome = feed.deltas(question, log: log)
        guard case .problem(let problem) = outcome, feed.isShared,
            RequestCheck.isOfHistory(problem)
        else { return outcome }
        do throws(StorageFault) {
            _ = try catchUp()
        } catch {
            return .problem(RequestCheck.problem(for: error))
        }
        return feed.deltas(question, log: log)
    }

    /// Brings the feed up to what is stored: with the entries it lacks, or, where they are many or
    /// the log is another one than it was, with the log's end alone. May be called as often as
    /// wanted, also while the node writes: one small question where nothing is new.
    /// - Returns: The log's end, as the feed then knows it.
    @discardableResult
    public func catchUp() throws(StorageFault) -> LogHead {
        // Before the log is asked: what is held now was committed then.
        let place = feed.cache.place
        let extent = try log.extent()
        try feed.follow(
            to: extent.head, floor: extent.floor, from: place, log: log, maxBytes: 16 << 20)
        return feed.head
    }

    /// As `CheckSource.takeSteps()`.
    package func takeComparisonSteps() -> Int { check.takeSteps() }
}

@available(*, unavailable)
extension LogReader: Sendable {}
