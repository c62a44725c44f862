import Martlet
import RandomKit
import Synchronization

/// A device of a soak: does one step after another, each as soon as it is due and the one before is
/// done.
final class SoakDevice: Sendable {
    private struct State {
        var device: DemoDevice
        var isAway = false
    }

    private let state: Mutex<State>
    private let team: DemoTeam
    private let meter: SoakMeter
    private let tries: Int

    /// - Parameter team: Opens files again; without devices, so that it keeps none that was closed.
    init(_ device: DemoDevice, team: DemoTeam, meter: SoakMeter, tries: Int) {
        state = Mutex(State(device: device))
        self.team = team
        self.meter = meter
        self.tries = tries
    }

    /// The device as it is now: another one after its file was opened again.
    var device: DemoDevice { state.withLock(\.device) }

    /// Does the steps.
    /// - Parameter start: When the plan began.
    /// - Parameter warmUp: How much of it does not count.
    func run(
        _ steps: AsyncStream<SoakStep>, start: ContinuousClock.Instant, warmUp: Duration
    ) async throws {
        for await step in steps {
            guard try await carryOut(step) else { continue }
            // From the moment it was due: a device that is behind shows in the figures.
            meter.note(
                step.deed, at: step.at - warmUp, took: ContinuousClock.now - (start + step.at))
        }
    }

    /// - Returns: Whether it counts: a save of a device that is away reaches nobody yet.
    private func carryOut(_ step: SoakStep) async throws -> Bool {
        let (device, isAway) = state.withLock { ($0.device, $0.isAway) }
        switch step.deed {
        case .save:
            var random = SplitMix64(seed: step.seed)
            guard try await device.save(&random), !isAway else { return false }
            meter.failed(try await device.sync(tries: tries))
        case .sync:
            meter.failed(try await device.sync(tries: tries))
        case .leave:
            await device.client.stop()
            state.withLock { $0.isAway = true }
        case .comeBack:
            device.client.start()
            state.withLock { $0.isAway = false }
            meter.failed(try await device.sync(tries: tries))
        case .reopen:
            await device.client.close()
            let opened = try await team.openAgain(device.number)
            opened.listen()
            state.withLock { $0.device = opened }
        }
        return true
    }
}
