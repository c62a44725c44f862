import Martlet
import RandomKit
import Synchronization

/// A device of a soak. It runs one step after another, each as soon as it is due and the one before
/// has ended.
final class SoakDevice: Sendable {
    private struct State {
        var device: DemoDevice
        var isAway = false
    }

    private let state: Mutex<State>
    private let team: DemoTeam
    private let meter: SoakMeter
    private let tries: Int

    /// - Parameter team: The team that opens files again. It has no devices, so that it keeps no
    ///   closed one.
    init(_ device: DemoDevice, team: DemoTeam, meter: SoakMeter, tries: Int) {
        state = Mutex(State(device: device))
        self.team = team
        self.meter = meter
        self.tries = tries
    }

    /// The present device. It is another one after its file was opened again.
    var device: DemoDevice { state.withLock(\.device) }

    /// Runs the steps.
    /// - Parameter start: The time at which the plan began.
    /// - Parameter warmUp: The part of the plan that does not count.
    func run(
        _ steps: AsyncStream<SoakStep>, start: ContinuousClock.Instant, warmUp: Duration
    ) async throws {
        for await step in steps {
            guard try await carryOut(step) else { continue }
            // The time runs from the moment at which the step was due, so that the figures show a
            // device that is behind.
            meter.note(
                step.deed, at: step.at - warmUp, took: ContinuousClock.now - (start + step.at))
        }
    }

    /// - Returns: True if the step counts. A save of a disconnected device does not count.
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
