import Foundation
import Martlet
import MartletModel

/// A long run of the same work. Devices save, exchange, listen, leave, return and reopen their
/// files at a constant pace, while memory, descriptors and times are measured.
public struct Soak: Sendable {
    private let options: SoakOptions
    private let progress: @Sendable (DemoProgress) -> Void

    /// The maximum number of measurements of the processes. They are at least a second apart.
    private static let mostLooks = 600
    /// The time in which all devices must be connected.
    private static let patience = Duration.seconds(60)

    /// - Parameter progress: Called often, from any thread.
    public init(
        _ options: SoakOptions, progress: @escaping @Sendable (DemoProgress) -> Void = { _ in }
    ) {
        self.options = options
        self.progress = progress
    }

    /// Runs the soak. If its task is cancelled, it stops everything and ends soon.
    /// - Returns: The report, good or bad.
    /// - Throws: `DemoError` and other errors if it could not be run to its end;
    ///   `CancellationError`.
    public func run() async throws -> SoakReport {
        guard ProcessFigures.areKnown else {
            throw DemoError("A soak reads /proc, which this system does not have.")
        }
        let data = try DemoData(options.demo)
        let folder = try DemoFolder(options.demo.directory, schema: data.schema)
        guard !folder.isUsed else {
            throw DemoError(
                "\(folder.path) holds devices already. Name another folder with --dir, or remove"
                    + " this one.")
        }
        return try await folder.withBackEnd(options.demo) { try await run(data, folder, $0) }
    }

    private func run(
        _ data: DemoData, _ folder: DemoFolder, _ backEnd: any DemoBackEnd
    ) async throws -> SoakReport {
        let token = folder.token
        var team = try await DemoTeam.open(
            count: options.demo.devices, folder, script: data.schema
        ) { number in
            // Each device has its own transport, as each app does. The transport's open connections
            // end with it.
            try URLSessionTransport(server: backEnd.address(of: number), token: token)
        }
        let meter = SoakMeter()
        var absent = team
        absent.devices = []
        let crew = team.devices.map { [absent] in
            SoakDevice($0, team: absent, meter: meter, tries: options.demo.tries)
        }
        do {
            try await fill(team, data)
            // From here on nothing refers to a closed client, as in an app.
            team.devices = []
            var report = try await work(crew, folder, backEnd, meter)
            team.devices = crew.map(\.device)
            try await team.drain(tries: options.demo.tries) { tell(.drain, $0, $1, $2) }
            (report.account, _) = try await TeamAudit(
                team: team, backEnd: backEnd, token: folder.token,
                progress: { tell(.audit, $0, $1, $2) }
            ).run()
            await team.close()
            return report
        } catch {
            // A separate task is needed, because a cancelled task does not wait.
            await Task { for member in crew { await member.device.client.close() } }.value
            throw error
        }
    }

    private func tell(_ stage: DemoProgress.Stage, _ done: Int, _ total: Int, _ detail: String = "")
    {
        progress(DemoProgress(stage: stage, done: done, total: total, detail: detail))
    }

    /// Brings all data to all devices, and makes them listen.
    private func fill(_ team: DemoTeam, _ data: DemoData) async throws {
        let (tries, count) = (options.demo.tries, team.devices.count)
        tell(.load, 0, 1)
        try await data.load(into: team, tries: tries) { tell(.load, $0, $1, $2) }
        tell(.seed, 0, count)
        try await team.each({ _ = try await $0.sync(tries: tries) }) {
            tell(.seed, $0, count, "devices have everything")
        }
        for device in team.devices { device.listen() }
        try await team.connect(Self.patience) { tell(.seed, $0, count, "devices are connected") }
    }

    // MARK: - The work

    private func work(
        _ crew: [SoakDevice], _ folder: DemoFolder, _ backEnd: any DemoBackEnd, _ meter: SoakMeter
    ) async throws -> SoakReport {
        let warmUp = options.warmUp
        let plan = SoakPlan(
            seed: options.demo.seed, devices: crew.count, warmUp: warmUp,
            length: warmUp + options.length, saves: options.saves)
        let own = ProcessInfo.processInfo.processIdentifier
        let devices = WatchedProcesses(name: "devices", folder: folder.path) { [own] }
        let watched = backEnd.watched + [devices]
        let start = ContinuousClock.now
        let looks = try await withThrowingTaskGroup(of: [[Look]].self) { group in
            var orders: [AsyncStream<SoakStep>.Continuation] = []
            for member in crew {
                let (steps, order) = AsyncStream.makeStream(of: SoakStep.self)
                orders.append(order)
                group.addTask {
                    try await member.run(steps, start: start, warmUp: warmUp)
                    return []
                }
            }
            group.addTask { [orders] in
                try await pace(plan, orders, start)
                return []
            }
            group.addTask { try await watch(watched, start) }
            return try await group.reduce(into: [[Look]]()) { $0 += $1 }
        }
        try Task.checkCancellation()
        return report(zip(watched, looks).map { ($0, $1) }, meter, crew.count)
    }

    /// Starts each step when it is due.
    private func pace(
        _ plan: SoakPlan, _ orders: [AsyncStream<SoakStep>.Continuation],
        _ start: ContinuousClock.Instant
    ) async throws {
        defer { for order in orders { order.finish() } }
        let seconds = Int((options.warmUp + options.length) / .seconds(1))
        for step in plan.steps {
            try await Task.sleep(until: start + step.at, clock: .continuous)
            orders[step.device].yield(step)
            tell(.work, Int(step.at / .seconds(1)), seconds, "seconds of soaking")
        }
    }

    /// The figures of processes at a moment, in seconds from the start.
    private struct Look {
        let at: Double
        let figures: ProcessFigures
    }

    /// - Returns: For each watched group, its figures from the end of the warm-up on.
    private func watch(
        _ watched: [WatchedProcesses], _ start: ContinuousClock.Instant
    ) async throws -> [[Look]] {
        var looks = watched.map { _ in [Look]() }
        let end = start + options.warmUp + options.length
        let interval = max(.seconds(1), options.length / Self.mostLooks)
        var next = start + options.warmUp
        while next < end {
            try await Task.sleep(until: next, clock: .continuous)
            for (index, processes) in watched.enumerated() {
                let at = (ContinuousClock.now - start) / .seconds(1)
                looks[index].append(Look(at: at, figures: processes.look()))
            }
            next += interval
        }
        return looks
    }

    private func report(
        _ looks: [(WatchedProcesses, [Look])], _ meter: SoakMeter, _ devices: Int
    ) -> SoakReport {
        let length = options.length
        func whole(_ deed: SoakStep.Deed) -> SoakPart {
            SoakPart(meter.times(deed).filter { $0.at >= .zero }.map(\.took))
        }
        var report = SoakReport()
        report.seed = options.demo.seed
        report.devices = devices
        report.length = length
        report.pace = options.saves
        report.saves = SoakPart.tenths(meter.times(.save), of: length)
        report.syncs = SoakPart.tenths(meter.times(.sync), of: length)
        report.comeBacks = whole(.comeBack)
        report.reopenings = whole(.reopen)
        report.failures = meter.failures
        report.usages = looks.map { Self.usage($0, $1) }
        return report
    }

    private static func usage(_ processes: WatchedProcesses, _ looks: [Look]) -> SoakReport.Usage {
        var trends: [SoakFigure: Trend] = [:]
        for figure in SoakFigure.allCases where figure != .files || processes.folder != nil {
            trends[figure] = Trend(looks.map { ($0.at, figure.value($0.figures)) })
        }
        var processors = 0.0
        if let first = looks.first, let last = looks.last, last.at > first.at {
            let used = last.figures.processorSeconds - first.figures.processorSeconds
            processors = used / (last.at - first.at)
        }
        return SoakReport.Usage(
            name: processes.name, trends: trends, judged: processes.judged, processors: processors)
    }
}
