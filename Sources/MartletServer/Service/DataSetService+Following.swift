internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

extension DataSetService {
    /// Watches a data set from a queue other than its writer's, and updates the memory to what it
    /// sees.
    final class StorageWatcher {
        let watch: any StorageWatch
        private let reader: LogReader
        private let feed: DataSetFeed

        init(_ watch: any StorageWatch, _ reader: LogReader, _ feed: DataSetFeed) {
            self.watch = watch
            self.reader = reader
            self.feed = feed
        }

        func look(_ health: WriterHealth) throws(StorageFault) -> StorageLook {
            let look: StorageLook
            do throws(StorageFault) {
                look = try watch.look()
            } catch {
                if error.kind == .moved { health.failed(.moved) }
                throw error
            }
            if health.isMoved { health.worked() }
            if look.head != feed.head || look.floor != feed.floor { try reader.catchUp() }
            return look
        }
    }

    /// A follower at work, with its connections.
    struct Following: Sendable {
        let lookout: Confined<StorageWatcher>
        let follower: Follower
        /// The reader of external writes that the storage does not note by itself; nil if triggers
        /// note them.
        let reading: ExternalReading?
        let locked: LockedTables

        func stop() async {
            await reading?.stop()
            follower.stop()
            await lookout.end()
        }
    }

    /// The state of a data set that other processes or programs write to.
    struct FollowingState: Sendable {
        let dataSet: String
        /// The seconds since the storage last answered.
        let lag: Double
        let account: StorageStatus?
    }

    /// Begins to follow the writes that other processes and programs make to the data set.
    static func follow(
        _ name: String, _ opened: Opening, _ writer: Confined<DataSetNode>,
        _ announcer: CommitPublisher, _ health: WriterHealth, _ setup: Setup
    ) async throws -> Following {
        let feed = opened.feed
        let lookout = try await Confined.making(label: "martlet.lookout.\(name)") {
            [readers = opened.readers] in
            StorageWatcher(
                readers.watch(),
                LogReader(feed: feed, log: readers.log(), check: readers.check()), feed)
        }
        let intake = ExternalIntake(writer: writer) {
            takeExternalWrites(name, writer, feed, announcer, setup)
        }
        let newest = Mutex<Revision>(0)
        let locked = LockedTables()
        let waiting = Mutex(false)
        let follower = Follower(
            queue: lookout.queue, pulse: setup.pulse,
            work: .init(
                look: {
                    // The earlier end of the log is compared, because own change sets move the end
                    // without a look.
                    let before = newest.withLock { max($0, feed.head.revision) }
                    let look = try lookout.here { try $0.look(health) }
                    let head = feed.head.revision
                    newest.withLock { $0 = head }
                    if head < before {
                        setup.log.log(
                            .warning, "storage",
                            [
                                ("dataSet", .text(name)), ("reason", .text(Self.wentBack)),
                                ("before", .number(Int(before))), ("now", .number(Int(head))),
                            ])
                        announcer.restarted(at: head)
                    }
                    return look
                },
                isQuiet: opened.readers.quiet(),
                found: { look in
                    announcer.reached(feed.head.revision, isOurs: false)
                    if look.tables != opened.tables { setup.changed() }
                    if look.hasExternalWrites { intake.take() }
                    if let news = locked.found(look.locked) { tell(news, of: name, setup) }
                    let wait = health.commitWait
                    let isNews = waiting.withLock { waiting in
                        defer { waiting = wait != nil }
                        return !waiting
                    }
                    if isNews, let wait { tell(ofWait: wait, of: name, setup) }
                },
                report: { reason in
                    if reason != nil { setup.metrics.countStorageFault("look") }
                    setup.log.log(
                        reason == nil ? .info : .error, "storage",
                        [
                            ("dataSet", .text(name)),
                            ("reason", .text(reason ?? "the storage answers again")),
                        ])
                }))
        setup.redis?.follow(opened.identity) { revision in
            if revision > feed.head.revision { follower.wake() }
        }
        follower.start()
        return Following(
            lookout: lookout, follower: follower,
            reading: try await read(name, opened, follower, setup), locked: locked)
    }

    private static func tell(_ news: LockedTables.News, of name: String, _ setup: Setup) {
        switch news {
        case .locked(let types):
            setup.log.log(
                .warning, "locked",
                [
                    ("dataSet", .text(name)), ("types", .text(types.joined(separator: ", "))),
                    ("reason", .text("Another program has locked tables, also against reading.")),
                    ("remedy", .text("Have its transaction end; pg_locks shows whose it is.")),
                ])
        case .free:
            setup.log.log(
                .info, "locked",
                [
                    ("dataSet", .text(name)),
                    ("reason", .text("The tables are no longer locked.")),
                ])
        }
    }

    /// Returns the words for a commit that takes long.
    static func waits(for wait: Duration) -> String {
        "the writer waits for its commit for \(wait.components.seconds) s already"
    }

    private static func tell(ofWait wait: Duration, of name: String, _ setup: Setup) {
        setup.log.log(
            .error, "storage",
            [
                ("dataSet", .text(name)), ("reason", .text(waits(for: wait))),
                ("remedy", .text(waitRemedy)),
            ])
    }

    private static let waitRemedy = """
        See that the disk is not overloaded and, in PostgreSQL, that the standbys in \
        synchronous_standby_names answer; martlet doctor says more. Until then nothing is accepted.
        """

    private static let wentBack = """
        The log went back: the database was restored, or a standby that lagged took over. Devices send \
        their own changes again; external writes in between are lost.
        """

    /// Begins to read external writes, if the storage does not note them without a reader.
    private static func read(
        _ name: String, _ opened: Opening, _ follower: Follower, _ setup: Setup
    ) async throws -> ExternalReading? {
        guard try opened.readers.externalReader() != nil else { return nil }
        let reader = try await Confined<any ExternalReader>.making(label: "martlet.changes.\(name)")
        {
            [readers = opened.readers] in
            guard let reader = try readers.externalReader() else { throw OwnerStopped() }
            return reader
        }
        let reading = ExternalReading(
            reader, found: { follower.wake() },
            report: { words, isFailure in
                setup.log.log(
                    isFailure ? .error : .info, "changes",
                    [("dataSet", .text(name)), ("note", .text(words))])
            })
        reading.start()
        return reading
    }

    /// Reports a fault to the operator. If the tables have changed, it has the data set reopened.
    static func report(_ fault: StorageFault, of name: String, _ setup: Setup) {
        setup.metrics.countStorageFault(fault.kind.rawValue)
        setup.log.log(
            .error, "storage",
            [("dataSet", .text(name)), ("reason", .text(fault.description))])
        if fault.kind == .changed { setup.changed() }
    }

    /// Returns a function that lets readers on other queues begin at a moment when the log has all
    /// external writes. The writer does its other work between the steps, and the follower
    /// announces the new revisions.
    static func consistently(
        _ name: String, _ writer: Confined<DataSetNode>, _ setup: Setup
    ) -> SnapshotService.ConsistentReading {
        { (body) throws(StorageFault) in
            for _ in 0..<DataSetNode.intakeSteps {
                let isCaughtUp: Bool
                do {
                    isCaughtUp = try writer.wait { node in
                        defer { setup.metrics.countExternal(taken: node.takeExternalCount()) }
                        return try node.whenCaughtUp(now: setup.now(), body)
                    }
                } catch let fault as StorageFault {
                    report(fault, of: name, setup)
                    throw fault
                } catch {
                    throw StorageFault(.failed, "the server is stopping")
                }
                if isCaughtUp { return }
            }
            throw StorageFault.neverCaughtUp
        }
    }

    /// Takes external writes into the log, in one step.
    ///
    /// - Returns: True if there may be more.
    private static func takeExternalWrites(
        _ name: String, _ writer: Confined<DataSetNode>, _ feed: DataSetFeed,
        _ announcer: CommitPublisher, _ setup: Setup
    ) -> Bool {
        let before = feed.head.revision
        let more = try? writer.here { node in
            // The next look finds the writes that cannot be taken now.
            let more = node.takeExternalWrites(now: setup.now()) && feed.head.revision > before
            setup.metrics.countExternal(taken: node.takeExternalCount())
            guard let fault = node.takeFault() else { return more }
            report(fault, of: name, setup)
            return false
        }
        announcer.reached(feed.head.revision, isOurs: true)
        return more ?? false
    }
}
