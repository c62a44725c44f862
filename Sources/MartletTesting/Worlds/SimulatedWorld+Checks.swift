internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore

extension SimulatedWorld {
    /// The rounds of decisions after which resolvers count as endless.
    private static let longestResolving = 20

    /// Stops all faults, lets everything come to rest, and checks everything.
    /// - Throws: `SimulationFailure` for the first broken promise.
    public func converge() async throws {
        try guarded { try engine.stopFaults() }
        var round = 0
        repeat {
            round += 1
            guard round <= Self.longestResolving else {
                throw engine.failure(
                    "the resolver does not come to rest: after \(round - 1) rounds without any"
                        + " fault it still makes new edits")
            }
            try guarded { try engine.comeToRest() }
        } while try await resolveAll()
        try guarded { try engine.compareAll() }
        try checkMarks()
        for device in devices { try checkAlways(device.number) }
        for check in simulation.worldChecks {
            let problem: String?
            do {
                problem = try await check.body(devices)
            } catch {
                problem = "it could not be looked at: \(error)"
            }
            if let broken { throw broken }
            if let problem { throw engine.failure("“\(check.name)” does not hold: \(problem)") }
        }
    }

    /// Lets the app decide about all refused sets.
    /// - Returns: Whether there is something to send now.
    private func resolveAll() async throws -> Bool {
        var isWaiting = false
        for device in engine.devices {
            try await resolve(device.number)
            if let node = device.node, try guarded({ try node.store.outboxCount > 0 }) {
                isWaiting = true
            }
        }
        return isWaiting
    }

    /// Checks the app's conditions on a device that is on.
    func checkAlways(_ number: Int) throws {
        guard engine.devices[number].isUp else { return }
        for check in simulation.deviceChecks {
            let problem: String?
            do {
                problem = try read(number, life: nil, check.body)
            } catch {
                problem = "it could not be looked at: \(error)"
            }
            if let problem {
                throw engine.failure("“\(check.name)” does not hold: device \(number): \(problem)")
            }
        }
    }

    /// Checks that all typed marks have reached the server's history or are kept.
    private func checkMarks() throws {
        var found: Set<String> = []
        for entry in engine.logged {
            for item in entry.types.flatMap(\.entries) {
                found.formUnion(Marks.found(in: RecordValues(item.attributes, of: nil)))
            }
        }
        for device in engine.devices {
            guard let node = device.node else { continue }
            for change in try guarded({ try node.store.parked() }).flatMap(\.changes) {
                if let mine = change.mine { found.formUnion(Marks.found(in: mine)) }
            }
        }
        for text in typed where !found.contains(text.mark) && dropped[text.identifier] != true {
            let fate =
                dropped[text.identifier] == nil
                ? "" : ". Its set was refused, and the resolver dropped it"
            throw engine.failure(
                "an edit is lost: \(text.mark), typed on device \(text.device) by one who"
                    + " \(text.deed) (set \(Journal.short(text.identifier))), stands neither in the"
                    + " server's history nor in an edit that is kept\(fate)")
        }
    }
}
