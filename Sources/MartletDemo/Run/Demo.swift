import Foundation
import LineKit
import Martlet
import MartletModel
import MartletTransfer
import RandomKit
import Synchronization

/// A demonstration with a team of devices, a real server in its own process, a network that loses
/// answers, and an account of every save at the end.
///
/// All files are in one folder. If a demo was stopped at any moment, the next one with the same
/// folder continues with its files, and also accounts for its saves.
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
    /// - Throws: `DemoError` and other errors if it could not be run to its end.
    public func run() async throws -> DemoReport {
        let data = try DemoData(options)
        let folder = try DemoFolder(options.directory, schema: data.schema)
        await folder.stopLeftServer()
        return try await folder.withBackEnd(options, rules: data.rules) {
            try await run(data, folder, $0)
        }
    }

    private func run(
        _ data: DemoData, _ folder: DemoFolder, _ backEnd: any DemoBackEnd
    ) async throws -> DemoReport {
        let access = try await DemoAccess(
            data.roles, folder, backEnd, program: options.program)
        let faults = NetworkFaults(
            seed: options.seed, lostAnswers: options.lostAnswers,
            lostRequests: options.lostRequests, cutStreams: options.cutStreams)
        let meter = LiveMeter()
        let line = BadLine(
            to: backEnd.address(of: Self.numberAtTheEnd).port ?? 80,
            BadLine.Quality(bytesPerSecond: 300_000, secondsBetweenCuts: 1))
        defer { line.close() }
        let team = try await DemoTeam.open(
            count: options.devices, folder, script: data.schema, roles: data.roles,
            network: try network(access, backEnd, faults, meter, line))
        var report = DemoReport()
        report.seed = options.seed
        report.judgesLive = options.size != .small
        let clock = ContinuousClock()
        for stage in [load(data), fill, work(with: backEnd, data.roles)] {
            report.seconds.append(try await clock.measure { try await stage(team) })
        }
        let live = LiveStage(options: options, meter: meter, roles: data.roles) {
            tell(.live, $0, $1, $2)
        }
        let watching = clock.now
        let (joiner, join) = try await live.run(team)
        report.join = join
        report.seconds.append(clock.now - watching)
        var confirmed = 0
        report.seconds.append(
            try await clock.measure {
                try await backEnd.awaitLog()
                try await team.drain(tries: options.tries) { tell(.drain, $0, $1, $2) }
                // The last saves are sent only now.
                _ = try await joiner.sync(tries: options.tries)
                confirmed = try await Purges(team: team, backEnd: backEnd, options: options).wait()
            })
        await joiner.client.close()
        report.seconds.append(
            try await clock.measure {
                (report.account, report.views) = try await TeamAudit(
                    team: team, backEnd: backEnd, token: access.office, watchers: [team.joinerPath],
                    progress: { tell(.audit, $0, $1, $2) }
                ).run()
                report.views?.confirmed = confirmed
            })
        report.story = backEnd.story
        let counts = faults.counts
        report.live = meter.figures(devices: team.ofOffice.map(\.number), end: .now)
        report.live.cuts = counts.streamsCut + line.traffic.cuts
        report.exchanges = counts.exchanges
        report.lostAnswers = counts.answersLost
        report.lostRequests = counts.requestsLost
        report.retries = counts.answersLost + counts.requestsLost + counts.failures
        report.diskBytes = folder.byteCount()
        await team.close()
        return report
    }

    /// The number of the device with the bad line.
    private static let numberAtTheEnd = 2

    /// Returns each device's way to its server, with the faults of the network. Devices of one
    /// server and one user share its kept connections. The first device that only works also has a bad line:
    /// slow, and cut again and again.
    private func network(
        _ access: DemoAccess, _ backEnd: any DemoBackEnd, _ faults: NetworkFaults,
        _ meter: LiveMeter, _ line: BadLine
    ) throws -> DemoTeam.Network {
        struct Way: Hashable {
            let server: URL
            let token: String
        }
        var bases: [Way: URLSessionTransport] = [:]
        // There is one more than the number of devices, because one joins.
        for number in 1...options.devices + 1 {
            let way = Way(server: backEnd.address(of: number), token: access.token(of: number))
            guard bases[way] == nil else { continue }
            bases[way] = try URLSessionTransport(server: way.server, token: way.token)
        }
        guard let address = URL(string: line.address) else {
            throw DemoError("The demo's line has no address.")
        }
        let atTheEnd = try URLSessionTransport(
            server: address, token: access.token(of: Self.numberAtTheEnd))
        return { [bases] number in
            if number == Self.numberAtTheEnd {
                return LossyTransport(
                    base: atTheEnd, faults: faults, meter: meter, device: number)
            }
            let way = Way(server: backEnd.address(of: number), token: access.token(of: number))
            guard let base = bases[way] else {
                throw DemoError("The demo has no server for device \(number).")
            }
            return LossyTransport(base: base, faults: faults, meter: meter, device: number)
        }
    }

    // MARK: - Stages

    private typealias Stage = @Sendable (DemoTeam) async throws -> Void

    private func tell(_ stage: DemoProgress.Stage, _ done: Int, _ total: Int, _ detail: String = "")
    {
        progress(DemoProgress(stage: stage, done: done, total: total, detail: detail))
    }

    /// Returns the stage in which the first device imports the records.
    private func load(_ data: DemoData) -> Stage {
        { team in
            tell(.load, 0, 1)
            try await data.load(into: team, tries: options.tries) { tell(.load, $0, $1, $2) }
        }
    }

    /// The stage in which every device gets its own full copy.
    private var fill: Stage {
        { team in
            let tries = options.tries
            tell(.seed, 0, team.devices.count)
            try await team.each({ _ = try await $0.sync(tries: tries) }) {
                tell(.seed, $0, team.devices.count, "devices have everything")
            }
        }
    }

    /// Returns the stage of work. In each round the office changes the coaches' rights, every device saves
    /// a few times, and most of them exchange.
    private func work(with backEnd: any DemoBackEnd, _ roles: DemoRoles?) -> Stage {
        { team in
            let isOver = Mutex(false)
            async let disturbance: Void = backEnd.disturb { isOver.withLock(\.self) }
            do {
                try await self.rounds(roles, until: { backEnd.isCalm })(team)
            } catch {
                isOver.withLock { $0 = true }
                throw error
            }
            isOver.withLock { $0 = true }
            try await disturbance
        }
    }

    /// Returns the stage of the wanted rounds. There are more if the back end's failures take
    /// longer.
    private func rounds(
        _ roles: DemoRoles?, until isCalm: @escaping @Sendable () -> Bool
    ) -> Stage {
        { team in
            let saves = Mutex(0)
            let options = options
            var round = 0
            while round < options.rounds || !isCalm() {
                if let roles, let office = team.devices.first {
                    var change = RightsChange(roles, seed: options.seed &+ UInt64(round))
                    try await change.run(on: office)
                }
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

    /// Runs one round of one device. The seed, the device and the round determine it.
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
}
