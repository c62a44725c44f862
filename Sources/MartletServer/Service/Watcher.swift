internal import Dispatch
internal import MartletModel
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Looks for writes to a data set by other processes and programs: it brings memory up to them, has
/// the writer take external writes into the log, and announces new revisions.
///
/// It looks ten times a second and when it is woken. If a cheap check shows that nothing was
/// written, it looks every five seconds only. After a failure it looks less often, down to every
/// two seconds, and reports that once.
final class Watcher: Sendable {
    /// The connections with which the watcher looks.
    private struct Sources {
        let watch: any StorageWatch
        let log: LogReader
    }

    private struct State {
        var isStopped = false
        /// True if a requested look is on its way.
        var isAsked = false
        var failures = 0
        /// The number of beats since the last look.
        var beats = 0
        /// The number under which the pulse has the watcher.
        var pulse: Int?
        /// True if a look has worked.
        var hasLooked = false
        /// The time of the last look that worked, or check that made one unnecessary; at first,
        /// when the data set was opened.
        var seen = ContinuousClock.now
        /// The end of the log at the last look.
        var newest: Revision = 0
        /// True if the last look found that the writer's commit takes long.
        var hasWait = false
        /// True if the last look found a server with other policies.
        var hasOtherPolicies = false
    }

    /// The time between two looks.
    static let interval = DispatchTimeInterval.milliseconds(100)
    /// The time between two looks for notices, which arrive in swarms.
    private static let shortest = DispatchTimeInterval.milliseconds(2)
    private static let longestPause = 2_000
    /// The number of beats after which the watcher looks even if nothing seems written.
    private static let mostBeats = 50

    private let opened: OpenNode
    private let writer: Writer
    private let publisher: CommitPublisher
    private let pulse: Pulse
    private let sources: Confined<Sources>
    /// Checks at little cost whether anything was written; nil if only a look can tell.
    private let quiet: FileQuiet?
    /// The reader of external writes that the storage does not note by itself; nil if triggers
    /// note them.
    private let reading: ExternalReading?
    private let locked = LockedTables()
    private let state = Mutex(State())

    /// Makes a watcher, which `start` sets to work.
    ///
    /// - Parameter pulse: The timer that many watchers share for their cheap checks.
    /// - Throws: The errors of the backing.
    init(
        _ opened: OpenNode, _ writer: Writer, _ publisher: CommitPublisher, _ pulse: Pulse
    ) async throws {
        (self.opened, self.writer, self.publisher, self.pulse) = (opened, writer, publisher, pulse)
        sources = try await Confined.making(label: "martlet.watcher.\(opened.reports.dataSet)") {
            Sources(
                watch: opened.readers.watch(),
                log: LogReader(
                    feed: opened.feed, log: opened.readers.log(), check: opened.readers.check()))
        }
        quiet = opened.readers.quiet()
        reading = try await ExternalReading(opened)
    }

    /// Begins to look, and to read external writes that need a reader.
    ///
    /// - Parameter redis: Tells of the commits of other processes; nil if there is no Redis.
    func start(_ redis: RedisHub?) {
        redis?.follow(opened.identity) { [weak self] revision in
            guard let self, revision > opened.feed.head.revision else { return }
            wake()
        }
        if quiet == nil {
            sources.queue.async { self.tick() }
        } else {
            sources.queue.async { self.look() }
            let number = pulse.add { [weak self] in self?.beat() }
            state.withLock { $0.pulse = number }
        }
        reading?.start(waking: self)
    }

    /// Asks for a look, because there may be something new.
    func wake() {
        let isFirst = state.withLock { state in
            guard !state.isStopped, !state.isAsked else { return false }
            state.isAsked = true
            return true
        }
        guard isFirst else { return }
        sources.queue.asyncAfter(deadline: .now() + Self.shortest) { self.look() }
    }

    /// Ends the looks, and returns when one that is under way has finished.
    func stop() async {
        await reading?.stop()
        let number = state.withLock { state in
            state.isStopped = true
            return state.pulse
        }
        if let number { pulse.remove(number) }
        await sources.end()
    }

    /// Looks if there may be a write, or if the last look was long ago.
    private func beat() {
        let failures = state.withLock { state in
            state.beats += 1
            return state.failures
        }
        if failures == 0, quiet?.isQuiet() == true {
            let isLongAgo = state.withLock { state in
                if state.hasLooked { state.seen = .now }
                return state.beats >= Self.mostBeats
            }
            guard isLongAgo else { return }
        }
        let isFirst = state.withLock { state in
            // After failures it looks less often.
            let pause = min(Self.longestPause / 100, 1 << min(failures, 6))
            guard !state.isStopped, !state.isAsked, state.beats >= (failures == 0 ? 1 : pause)
            else { return false }
            state.isAsked = true
            return true
        }
        if isFirst { sources.queue.async { self.look() } }
    }

    // MARK: - On the queue

    private func tick() {
        guard !state.withLock({ $0.isStopped }) else { return }
        look()
        let failures = state.withLock { $0.failures }
        let pause = min(Self.longestPause, 100 << min(failures, 6))
        let next = failures == 0 ? Self.interval : .milliseconds(pause)
        sources.queue.asyncAfter(deadline: .now() + next) { self.tick() }
    }

    private func look() {
        let isWanted = state.withLock { state in
            state.isAsked = false
            state.beats = 0
            return !state.isStopped
        }
        guard isWanted else { return }
        do {
            let look = try follow()
            let hadFailed = state.withLock { state in
                defer { state.failures = 0 }
                state.hasLooked = true
                state.seen = .now
                return state.failures > 0
            }
            if hadFailed { opened.reports.reportLooks(failing: nil) }
            found(look)
        } catch {
            let isFirst = state.withLock { state in
                state.failures += 1
                return state.failures == 1
            }
            if isFirst { opened.reports.reportLooks(failing: String(describing: error)) }
        }
    }

    /// Looks at the storage, and brings memory up to it.
    private func follow() throws -> StorageLook {
        // The earlier end of the log is compared, because own change sets move the end without a
        // look.
        let before = max(state.withLock { $0.newest }, opened.feed.head.revision)
        let look = try sources.here { sources in
            let look = try self.look(with: sources.watch)
            if look.head != opened.feed.head || look.floor != opened.feed.floor {
                try sources.log.catchUp()
            }
            return look
        }
        let head = opened.feed.head.revision
        state.withLock { $0.newest = head }
        if head < before {
            opened.reports.reportLogWentBack(from: before, to: head)
            publisher.restarted(at: head)
            // The writer's next transaction retires all views.
            writer.takeExternalWrites()
        }
        return look
    }

    private func look(with watch: any StorageWatch) throws(StorageFault) -> StorageLook {
        do throws(StorageFault) {
            let look = try watch.look()
            if writer.health.isMoved { writer.health.worked() }
            return look
        } catch {
            if error.kind == .moved { writer.health.failed(.moved) }
            throw error
        }
    }

    /// Passes on what a look found.
    private func found(_ look: StorageLook) {
        publisher.reached(opened.feed.head.revision, isOurs: false)
        if look.tables != opened.tables { opened.reports.changed() }
        if look.hasExternalWrites { writer.takeExternalWrites() }
        if let news = locked.found(look.locked) { opened.reports.report(news) }
        let isOther = state.withLock { state in
            defer { state.hasOtherPolicies = look.hasOtherPolicies }
            return state.hasOtherPolicies != look.hasOtherPolicies
        }
        if isOther { opened.reports.report(otherPolicies: look.hasOtherPolicies) }
        let wait = writer.health.commitWait
        let isNews = state.withLock { state in
            defer { state.hasWait = wait != nil }
            return !state.hasWait
        }
        if isNews, let wait { opened.reports.report(commitWait: wait) }
    }

    // MARK: - For operators

    /// The time since a look last worked, or a check made one unnecessary; before the first look,
    /// the time since the data set was opened.
    private var age: Duration { ContinuousClock.now - state.withLock { $0.seen } }

    /// The reason why the storage counts as gone; nil if it answers.
    var silenceReason: String? {
        let age = age
        guard age >= .seconds(3) else { return nil }
        return "its storage has not answered for \(age.components.seconds) s"
    }

    /// The reason why no external writes are known; nil if they are.
    var unreadReason: String? { reading?.unreadyReason }

    /// The number of the data set's tables that another program keeps locked.
    var lockedTables: Int { locked.count }

    /// True if some external writes are not read, and all others are.
    var readsInPart: Bool { reading?.isLimited == true }

    /// The state of a data set that other processes or programs write to.
    struct FollowingState: Sendable {
        let dataSet: String
        /// The seconds since the storage last answered.
        let lag: Double
        let account: StorageStatus?
    }

    /// Returns how far the data set is behind other processes' and programs' writes.
    func followingState() async -> FollowingState {
        let age = age
        let (seconds, attoseconds) = age.components
        // A storage that does not answer would delay the answer with the metrics.
        let account = age < .seconds(3) ? try? await sources.run { try $0.watch.account() } : nil
        return FollowingState(
            dataSet: opened.reports.dataSet, lag: Double(seconds) + Double(attoseconds) / 1e18,
            account: account)
    }
}
