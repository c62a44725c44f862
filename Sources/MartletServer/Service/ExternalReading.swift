internal import Dispatch
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Runs the reader of external writes for as long as the server runs, on a queue of its own, where
/// it waits for writes.
final class ExternalReading: Sendable {
    /// The longest wait of one step, by which the end may be late when the server stops.
    private static let step = Duration.milliseconds(100)
    /// The pause before another try if another process reads, or after a failure.
    private static let pause = DispatchTimeInterval.milliseconds(500)

    private let reader: Confined<any ExternalReader>
    private let reports: DataSetReports
    private let isStopped = Mutex(false)

    /// The reasons why external writes cannot be read.
    private struct Trouble {
        /// The time when reading began to fail.
        var since: ContinuousClock.Instant?
        var faults: [String] = []
    }

    /// Failures that last for less time do not make the data set unready.
    private static let patience = Duration.seconds(3)
    private let trouble = Mutex(Trouble())

    /// True if some external writes are not read, and all others are.
    var isLimited: Bool { trouble.withLock { !$0.faults.isEmpty } }

    /// The reason why no external writes are read; nil if they are read, here or by another
    /// process.
    var unreadyReason: String? {
        trouble.withLock { trouble in
            guard let since = trouble.since, .now - since >= Self.patience else { return nil }
            return "what other programs write cannot be read"
        }
    }

    /// Makes the reading, which `start` begins; nil if the storage notes external writes without a
    /// reader.
    ///
    /// - Throws: The errors of the backing.
    init?(_ opened: OpenNode) async throws {
        guard try opened.readers.externalReader() != nil else { return nil }
        reports = opened.reports
        reader = try await Confined.making(label: "martlet.changes.\(reports.dataSet)") {
            guard let reader = try opened.readers.externalReader() else { throw OwnerStopped() }
            return reader
        }
    }

    /// Begins to read, and wakes the watcher when there are writes.
    func start(waking watcher: Watcher) {
        reader.queue.async { self.run(hasFailed: false, waking: watcher) }
    }

    func stop() async {
        isStopped.withLock { $0 = true }
        await reader.end()
    }

    private func run(hasFailed: Bool, waking watcher: Watcher) {
        guard !isStopped.withLock({ $0 }) else { return }
        do {
            let (hasFound, notes, faults) = try reader.here { reader in
                let hasFound = try reader.step(within: Self.step)
                return (hasFound, reader.takeNotes(), hasFound == nil ? [] : reader.faults)
            }
            for note in notes { reports.reportReading(note, isFailure: false) }
            let known = trouble.withLock { trouble in
                defer { trouble = Trouble(faults: faults) }
                return trouble.faults
            }
            for fault in faults where !known.contains(fault) {
                reports.reportReading(fault, isFailure: true)
            }
            if hasFailed {
                reports.reportReading("other programs' writes are read again", isFailure: false)
            }
            if let hasFound {
                if hasFound { watcher.wake() }
                reader.queue.async { self.run(hasFailed: false, waking: watcher) }
            } else {
                again(hasFailed: false, waking: watcher)
            }
        } catch is OwnerStopped {
            return
        } catch {
            if !hasFailed { reports.reportReading(String(describing: error), isFailure: true) }
            // Writes that wait for transactions of other programs are read later.
            if (error as? StorageFault)?.kind != .busy {
                trouble.withLock { $0.since = $0.since ?? .now }
            }
            again(hasFailed: true, waking: watcher)
        }
    }

    private func again(hasFailed: Bool, waking watcher: Watcher) {
        reader.queue.asyncAfter(deadline: .now() + Self.pause) {
            self.run(hasFailed: hasFailed, waking: watcher)
        }
    }
}
