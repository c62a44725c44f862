import Foundation
import Martlet
import MartletCore
import MartletProtocol
import MartletTransfer
import Synchronization

/// A team of devices, a real server in its own process, a network that loses answers, and at the
/// end an account of every save.
///
/// Everything lives in one folder. A demo that was stopped at any moment leaves files that the
/// next one with the same folder goes on with, and accounts for as well.
public struct Demo: Sendable {
    private let options: DemoOptions
    private let progress: @Sendable (DemoProgress) -> Void

    /// - Parameter progress: Called often, from any thread.
    public init(
        _ options: DemoOptions, progress: @escaping @Sendable (DemoProgress) -> Void = { _ in }
    ) {
        self.options = options
        self.progress = progress
    }

    /// Runs the demo.
    /// - Returns: The report, good or bad.
    /// - Throws: `DemoError` and others when it could not be run to its end.
    public func run() async throws -> DemoReport {
        let data = try DemoData(options)
        let folder = try DemoFolder(options.directory, schema: data.schema)
        await folder.stopLeftServer()
        let backEnd = try await startBackEnd(folder)
        do {
            let report = try await run(data, folder, backEnd)
            await backEnd.stop()
            return report
        } catch {
            let died = !backEnd.isRunning
            await backEnd.stop()
            if died {
                throw DemoError("A server ended in mid-demo; see the logs in \(folder.path).")
            }
            throw error
        }
    }

    private func startBackEnd(_ folder: DemoFolder) async throws -> any DemoBackEnd {
        if let program = options.databases {
            guard !folder.isUsed else {
                throw DemoError(
                    "\(folder.path) holds the files of an earlier demo, whose database is gone. Name"
                        + " another folder with --dir, or remove this one.")
            }
            return try await PostgresBackEnd.start(options, program: program, folder)
        }
        let server = try await ServerProcess.start(
            options.program,
            [
                "--schema", folder.schemaPath, "--port", String(options.port), "--token",
                "demo:\(folder.token)", "--log", "warning", "--snapshot-every",
                String(options.snapshotEvery),
            ], folder: folder.path, name: "server")
        return EmbeddedBackEnd(server: server, folder: folder)
    }

    private func run(
        _ data: DemoData, _ folder: DemoFolder, _ backEnd: any DemoBackEnd
    ) async throws -> DemoReport {
        let faults = NetworkFaults(
            seed: options.seed, lostAnswers: options.lostAnswers,
            lostRequests: options.lostRequests, cutStreams: options.cutStreams)
        let meter = LiveMeter()
        let team = try await DemoTeam.open(
            count: options.devices, directory: folder.path, script: data.schema,
            backEnd: backEnd, token: folder.token, tag: folder.tag, faults: faults,
            meter: meter)
        var report = DemoReport()
        report.seed = options.seed
        report.types = team.schema.types.count
        report.replicas = team.devices.count + 1
        let clock = ContinuousClock()
        for stage in [load(data), fill, work(with: backEnd)] {
            report.seconds.append(try await clock.measure { try await stage(team) })
        }
        let live = LiveStage(options: options, meter: meter) { tell(.live, $0, $1, $2) }
        let watching = clock.now
        let (joiner, join) = try await live.run(team)
        report.join = join
        report.seconds.append(clock.now - watching)
        report.seconds.append(
            try await clock.measure {
                try await backEnd.settle()
                try await drain(team)
                // What was saved last went out only now.
                _ = try await joiner.sync(tries: options.tries)
            })
        await joiner.client.close()
        report.seconds.append(
            try await clock.measure { try await audit(team, folder, backEnd, &report) })
        let counts = faults.counts
        report.live = meter.figures(devices: team.devices.map(\.number), end: .now)
        report.live.cuts = counts.streamsCut
        report.exchanges = counts.exchanges
        report.lostAnswers = counts.answersLost
        report.lostRequests = counts.requestsLost
        report.retries = counts.answersLost + counts.requestsLost + counts.failures
        report.diskBytes = folder.byteCount()
        await team.close()
        return report
    }

    // MARK: - Stages

    private typealias Stage = @Sendable (DemoTeam) async throws -> Void

    private func tell(_ stage: DemoProgress.Stage, _ done: Int, _ total: Int, _ detail: String = "")
    {
        progress(DemoProgress(stage: stage, done: done, total: total, detail: detail))
    }

    /// The first device takes the records in, and exchanges while it does.
    private func load(_ data: DemoData) -> Stage {
        let sources = data.sources
        return { team in
            guard let office = team.devices.first else { return }
            tell(.load, 0, 1)
            _ = try await Importer(client: office.client).run(
                sources, schema: team.schema,
                progress: { tell(.load, $0.done, $0.total, $0.type) },
                afterSet: { sets in
                    if sets.isMultiple(of: 8) { _ = try await office.sync(tries: options.tries) }
                })
            _ = try await office.sync(tries: options.tries)
        }
    }

    /// Every device gets its own full copy.
    private var fill: Stage {
        { team in
            let tries = options.tries
            tell(.seed, 0, team.devices.count)
            try await team.each({ _ = try await $0.sync(tries: tries) }) {
                tell(.seed, $0, team.devices.count, "devices have everything")
            }
        }
    }

    /// In each round every device saves a few times, and most of them exchange.
    private func work(with backEnd: any DemoBackEnd) -> Stage {
        { team in
            let isOver = Mutex(false)
            async let disturbance: Void = backEnd.disturb { isOver.withLock(\.self) }
            do {
                try await self.rounds(until: { backEnd.isCalm })(team)
            } catch {
                isOver.withLock { $0 = true }
                throw error
            }
            isOver.withLock { $0 = true }
            try await disturbance
        }
    }

    /// As many rounds as were asked for, and more where the back end's failures take longer.
    private func rounds(until isCalm: @escaping @Sendable () -> Bool) -> Stage {
        { team in
            let saves = Mutex(0)
            let options = options
            var round = 0
            while round < options.rounds || !isCalm() {
                let total = max(options.rounds, round + 1) * team.devices.count
                try await team.each({ [round] device in
                    let made = try await Self.work(device, round: round, options)
                    saves.withLock { $0 += made }
                }) { done in
                    tell(
                        .work, round * team.devices.count + done, total,
                        "\(saves.withLock(\.self)) saves")
                }
                round += 1
            }
        }
    }

    /// One round of one device, decided by the seed, the device and the round.
    private static func work(
        _ device: DemoDevice, round: Int, _ options: DemoOptions
    ) async throws -> Int {
        let mixed = options.seed &+ UInt64(device.number) &* 1_000_003 &+ UInt64(round) &* 8_191
        var random = SplitMix64(seed: mixed)
        var saves = 0
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            if try await device.save(&random) { saves += 1 }
        }
        let isOnline = Int.random(in: 0..<10, using: &random) < 6
        if isOnline { _ = try await device.sync(tries: options.tries) }
        return saves
    }

    /// Everybody is online again, until everybody has everything.
    private var drain: Stage {
        { team in
            let tries = options.tries
            for _ in 0..<20 {
                try await team.each({ _ = try await $0.sync(tries: tries) }) {
                    tell(.drain, $0, team.devices.count, "devices have sent everything")
                }
                var revisions: Set<Revision> = []
                var waiting = 0
                for device in team.devices {
                    let status = try await device.client.status()
                    revisions.insert(status.revision)
                    waiting += status.outbox
                }
                if revisions.count == 1, waiting == 0 { return }
            }
            throw DemoError(
                "After 20 rounds without edits the devices are still not in step; the files are in"
                    + " \(options.directory).")
        }
    }

    // MARK: - The account

    private func audit(
        _ team: DemoTeam, _ folder: DemoFolder, _ backEnd: any DemoBackEnd,
        _ report: inout DemoReport
    ) async throws {
        tell(.audit, 0, team.devices.count, "reading the log")
        let log = try await LogAudit(
            try URLSessionTransport(server: backEnd.address(of: 0), token: folder.token))
        report.changeSets = Int(log.revision)
        report.gaps = log.gaps
        for device in team.devices {
            try await account(device, log, &report)
        }
        account(backEnd.others, log, &report)
        report.story = backEnd.story
        let comparison = ReplicaComparison(
            schema: team.schema, serverPath: try await backEnd.tables(team.schema))
        report.records = try comparison.recordCount()
        let paths = team.paths + [team.joinerPath]
        for (index, path) in paths.enumerated() {
            let differences = try comparison.differences(path)
            if differences.isEmpty { report.equalReplicas += 1 }
            report.findings += differences.prefix(3).map { "device \(index + 1): \($0)" }
            tell(.audit, index + 1, paths.count, "replicas compared")
        }
    }

    /// Finds each transaction of other programs in the log.
    private func account(_ others: OtherMarks, _ log: LogAudit, _ report: inout DemoReport) {
        report.otherTransactions = others.confirmed.count
        for mark in others.confirmed where log.entries[mark] == nil {
            report.lost += 1
            report.findings.append("\(mark) was committed with SQL and is not in the log")
        }
        for mark in others.confirmed + others.unknown where log.entries[mark, default: 0] > 1 {
            report.doubled += 1
            report.findings.append("\(mark) is in \(log.entries[mark, default: 0]) log entries")
        }
    }

    /// Finds each save of one device in the log or among the parked ones.
    private func account(
        _ device: DemoDevice, _ log: LogAudit, _ report: inout DemoReport
    ) async throws {
        let parked = try await device.client.parked()
        var parkedMarks: [String: Int] = [:]
        for set in parked {
            for mark in Mark.all(in: set) { parkedMarks[mark, default: 0] += 1 }
        }
        let marks = try await device.marks()
        for mark in marks {
            let places = log.entries[mark, default: 0] + parkedMarks[mark, default: 0]
            if places == 0 { report.lost += 1 }
            if places > 1 { report.doubled += 1 }
            if places != 1, report.findings.count < 20 {
                report.findings.append(
                    "\(mark) is in \(log.entries[mark, default: 0]) log entries and"
                        + " \(parkedMarks[mark, default: 0]) parked sets")
            }
        }
        report.saves += marks.count
        report.kept += parked.count
        let receipts = try await device.client.receipts(limit: 1_000_000)
        report.conflicts += receipts.count { $0.outcome == .refused }
    }
}
