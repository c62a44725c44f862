import Martlet
public import MartletModel
internal import MartletProtocol
internal import RandomKit

/// The stage in which all devices are connected and watch while people work.
struct LiveStage: Sendable {
    let options: DemoOptions
    let meter: LiveMeter
    let roles: DemoRoles?
    let tell: @Sendable (_ done: Int, _ total: Int, _ detail: String) -> Void

    /// The time between two saves, in which all devices can show the one before.
    private static let pace = Duration.milliseconds(200)
    /// The number of saves after which the office changes rights.
    private static let savesForRights = 20
    /// The time after which the last changes count as late.
    private static let patience = Duration.seconds(30)

    /// - Returns: The device that joined meanwhile, and the figures of its start.
    func run(_ team: DemoTeam) async throws -> (joiner: DemoDevice, JoinFigures) {
        let saves = max(40, 2 * team.devices.count)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            for device in team.devices {
                device.listen()
                // Somebody who sees a part is told only of what concerns him.
                guard device.coach == nil else { continue }
                let (meter, number) = (meter, device.number)
                let revisions = device.client.revisions
                group.addTask {
                    for await revision in revisions {
                        meter.reached(revision, device: number, at: .now)
                    }
                }
            }
            try await team.connect(Self.patience * 2) {
                tell($0, team.devices.count, "devices are connected")
            }
            meter.setOn(true)
            async let joining = join(team)
            try await work(team, saves: saves)
            var (joiner, figures) = try await joining
            try await awaitLast((team.ofOffice + [joiner]).map(\.client))
            figures.end = try await joiner.client.status().revision
            for device in team.devices + [joiner] { await device.client.stop() }
            group.cancelAll()
            return (joiner, figures)
        }
    }

    private func work(_ team: DemoTeam, saves: Int) async throws {
        var random = SplitMix64(seed: options.seed &+ 0x5EED)
        for number in 1...saves {
            if let device = team.devices.randomElement(using: &random) {
                _ = try await device.save(&random)
            }
            if number.isMultiple(of: Self.savesForRights), let roles,
                let office = team.devices.first
            {
                var change = RightsChange(roles, seed: random.next())
                try await change.run(on: office)
            }
            tell(number, saves, "saves, seen by all")
            try await Task.sleep(for: Self.pace)
        }
    }

    /// Lets a new device join while the others work, from the snapshot to the present state.
    private func join(_ team: DemoTeam) async throws -> (DemoDevice, JoinFigures) {
        var figures = JoinFigures()
        let revision = try await team.devices.first?.client.status().revision ?? 0
        figures.isSnapshotDue = revision >= 2 * Revision(options.snapshotEvery)
        // If the database was down while a snapshot was made, the server tries again after a while.
        // If there is no snapshot, the report says so.
        let end = ContinuousClock.now + Self.patience * 2
        while figures.isSnapshotDue, ContinuousClock.now < end,
            await !team.hasSnapshot()
        {
            try await Task.sleep(for: .milliseconds(200))
        }
        let start = ContinuousClock.now
        let joiner = try await team.join(tries: options.tries)
        let client = joiner.client
        figures.began = try await client.status().revision
        client.start()
        try await Patience.wait(
            Self.patience * 2, "The new device did not come to a live connection."
        ) {
            try await client.status().connection == .live
        }
        figures.time = ContinuousClock.now - start
        return (joiner, figures)
    }

    /// Waits until all devices show the last change. Changes that are still missing then count as
    /// late.
    private func awaitLast(_ clients: [MartletClient]) async throws {
        let end = ContinuousClock.now + Self.patience
        for client in clients {
            while try await client.status().revision < meter.newest,
                ContinuousClock.now < end
            {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        meter.setOn(false)
    }
}

/// The figures of a device that joined.
public struct JoinFigures: Hashable, Sendable {
    /// The snapshot's revision; 0 if there was none.
    public var began: Revision = 0
    /// Whether a snapshot was due, because the data set was old enough.
    public var isSnapshotDue = false
    /// The time until it had everything and received changes at once.
    public var time = Duration.zero
    /// The device's revision at the end of the stage.
    public var end: Revision = 0

    public init() {}
}
