internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit

/// The access of the app's code to a device.
extension SimulatedWorld {
    func read<Result: Sendable>(
        _ number: Int, life: Int?, _ body: @Sendable (ReadContext) throws -> Result
    ) throws -> Result {
        try makingTables(number, life) { machine, node in
            let context = ReadContext(session: Session(store: node.store.local))
            defer { context.end() }
            return try node.store.local.reading { try body(context) }
        }
    }

    func write<Result: Sendable>(
        _ number: Int, life: Int?, _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        try makingTables(number, life) { machine, node in
            let committed: Simulator.Committed<Result>?
            do {
                committed = try engine.commit(on: machine, token: deed ?? "", body)
            } catch {
                if machine.disk.isDown { engine.stop(machine) } else { engine.mend(machine.disk) }
                throw error
            }
            guard let committed else { throw Self.isOff }
            if let identifier = committed.identifier {
                try guarded {
                    note(try node.store.changes(of: identifier), of: identifier, on: number)
                    try engine.handle(
                        .wake(isUrgent: engine.random.chance(30)), on: machine)
                }
            }
            return committed.result
        }
    }

    func parked(_ number: Int, life: Int?) throws -> [ParkedSet] {
        try makingTables(number, life) { _, node in try node.store.parked() }
    }

    func drop(_ identifier: String, on number: Int, life: Int?) throws {
        try makingTables(number, life) { machine, _ in
            try engine.drop(identifier, on: machine)
            dropped[identifier] = isPerson || deed == nil
            try wake(machine)
        }
    }

    func retry(_ identifier: String, on number: Int, life: Int?) throws -> String {
        try makingTables(number, life) { machine, _ in
            guard let made = try engine.retry(identifier, on: machine) else { throw Self.isOff }
            try wake(machine)
            return made
        }
    }

    private func wake(_ machine: DeviceMachine) throws {
        try guarded { try engine.handle(.wake(isUrgent: false), on: machine) }
    }

    private static var isOff: StoreError {
        StoreError(.inputOutput, "The simulated device is off, or was switched off meanwhile.")
    }

    /// Runs work on a device that is on. If the work meets a table for the first time, creates the
    /// table and runs it again.
    private func makingTables<Result>(
        _ number: Int, _ life: Int?, _ work: (DeviceMachine, DeviceNode) throws -> Result
    ) throws -> Result {
        var made = 0
        while true {
            let machine = engine.devices[number]
            guard let node = machine.node, life ?? machine.life == machine.life else {
                throw Self.isOff
            }
            do {
                return try work(machine, node)
            } catch let missing as MissingTable where made < MissingTable.limit {
                made += 1
                try node.store.make(missing)
            } catch {
                throw StoreError.of(error)
            }
        }
    }

    /// Writes to the server's file as another program.
    /// - Throws: `SQLiteError` if the script fails.
    func writeToServer(_ script: String) throws {
        guard engine.server.isUp else { return }
        engine.tell(.server) { "another program: \(script)" }
        if let failure = try guarded({ try engine.writeExternal { try $0.execute(script) } }) {
            throw failure
        }
    }

    /// Writes to a device's file as another program, and lets the app take the changes in.
    /// - Throws: `SQLiteError` if the script fails.
    func write(_ script: String, to machine: DeviceMachine) throws {
        let failure = try guarded {
            let (made, failure) = try engine.runProgram(script, on: machine)
            guard let store = machine.node?.store else { return failure }
            for identifier in made {
                note(try store.changes(of: identifier), of: identifier, on: machine.number)
            }
            try engine.handle(.wake(isUrgent: false), on: machine)
            return failure
        }
        if let failure { throw failure }
    }

    /// Notes the marks in saved changes.
    private func note(
        _ changes: [DeviceStore.QueuedChange], of identifier: String, on device: Int
    ) {
        for change in changes {
            guard let attributes = change.attributes else { continue }
            for mark in Marks.found(in: RecordValues(attributes, of: nil)) {
                typed.append(
                    Typed(
                        mark: mark, device: device, identifier: identifier,
                        deed: deed ?? "the test"))
            }
        }
    }
}
