internal import Dispatch
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Has a data set's reader of other programs' writes read, for as long as the server runs: on a queue
/// of its own, where it waits for what comes.
final class ExternalReading: Sendable {
    /// How long one step waits: so late does it end when the server stops.
    private static let step = Duration.milliseconds(100)
    /// Until it is tried again where another process reads, or after a failure.
    private static let pause = DispatchTimeInterval.milliseconds(500)

    private let reader: Confined<any ExternalReader>
    /// Called when something was found.
    private let found: @Sendable () -> Void
    /// Hears what is to be told, and whether it is a failure.
    private let report: @Sendable (_ words: String, _ isFailure: Bool) -> Void
    private let isStopped = Mutex(false)

    /// What keeps other programs' writes from being read.
    private struct Trouble {
        /// When reading began to fail.
        var since: ContinuousClock.Instant?
        var faults: [String] = []
    }

    /// Failures that last for less are no hindrance.
    private static let patience = Duration.seconds(3)
    private let trouble = Mutex(Trouble())

    /// Whether some writes are not read while all others are.
    var isLimited: Bool { trouble.withLock { !$0.faults.isEmpty } }

    /// Why no writes of other programs are read; nil if they are, here or by another process.
    var unreadyReason: String? {
        trouble.withLock { trouble in
            guard let since = trouble.since, .now - since >= Self.patience else { return nil }
            return "what other programs write cannot be read"
        }
    }

    init(
        _ reader: Confined<any ExternalReader>, found: @escaping @Sendable () -> Void,
        report: @escaping @Sendable (_ words: String, _ isFailure: Bool) -> Void
    ) {
        self.reader = reader
        self.found = found
        self.report = report
    }

    func start() {
        reader.queue.async { self.run(hasFailed: false) }
    }

    func stop() async {
        isStopped.withLock { $0 = true }
        await reader.end()
    }

    private func run(hasFailed: Bool) {
        guard !isStopped.withLock({ $0 }) else { return }
        do {
            let (hasFound, notes, faults) = try reader.here { reader in
                let hasFound = try reader.step(within: Self.step)
                return (hasFound, reader.takeNotes(), hasFound == nil ? [] : reader.faults)
            }
            for note in notes { report(note, false) }
            let known = trouble.withLock { trouble in
                defer { trouble = Trouble(faults: faults) }
                return trouble.faults
            }
            for fault in faults where !known.contains(fault) { report(fault, true) }
            if hasFailed { report("other programs' writes are read again", false) }
            if let hasFound {
                if hasFound { found() }
                reader.queue.async { self.run(hasFailed: false) }
            } else {
                again(hasFailed: false)
            }
        } catch is ServerStopped {
            return
        } catch {
            if !hasFailed { report(String(describing: error), true) }
            // What waits for others' transactions is read later.
            if (error as? StorageFault)?.kind != .busy {
                trouble.withLock { $0.since = $0.since ?? .now }
            }
            again(hasFailed: true)
        }
    }

    private func again(hasFailed: Bool) {
        reader.queue.asyncAfter(deadline: .now() + Self.pause) {
            self.run(hasFailed: hasFailed)
        }
    }
}
