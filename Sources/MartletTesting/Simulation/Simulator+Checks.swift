internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import SQLiteFaults
internal import SQLiteRecords

extension Simulator {
    /// Compares a device's confirmed state with the log up to its revision, and checks that no save
    /// of the device is missing.
    func check(_ device: DeviceMachine) throws {
        guard let node = device.node else { return }
        let store = node.store
        // External writes that were not taken in yet are neither confirmed nor queued.
        guard try !store.hasOpenCapture else { return }
        if let problem = try store.contradiction() {
            throw failure("device \(device.number): \(problem)")
        }
        let revision = try store.revision
        guard revision <= model.revision else {
            throw failure("device \(device.number) is ahead of the server's log")
        }
        if revision < device.model.revision {
            guard device.mayHaveDroppedTables else {
                throw failure(
                    "device \(device.number) went back from revision"
                        + " \(device.model.revision) to \(revision)")
            }
            device.model = Model()
        }
        if device.mayHaveDroppedTables { device.seededAt = nil }
        device.mayHaveDroppedTables = false
        while device.model.revision < revision {
            let next = device.model.revision
            _ = device.model.fold(logged[Int(next)], revision: next + 1)
        }
        let absence = try absence(on: device, store)
        let confirmed = try store.confirmedState()
        let further = try store.slicedUpTo ?? revision
        var difference: String?
        // A device on the way to another view is judged when it is there.
        let isLimited = rights?.last[device.number] != nil
        for state in isLimited && further > revision ? [] : candidates(for: device, at: revision) {
            difference = state.only(store.knows).difference(from: confirmed, allowing: absence) {
                isAsLater($0, $1, $2, than: state, upTo: further, knows: store.knows)
            }
            if difference == nil { break }
        }
        if let difference {
            throw failure("device \(device.number) at revision \(revision): \(difference)")
        }
        try account(device, store: store)
    }

    /// Returns whether a record is as it was at a revision between the device's and that of a
    /// difference, which the device applies in slices.
    private func isAsLater(
        _ type: String, _ id: RecordID, _ record: [String: Value]?, than model: Model,
        upTo further: Revision, knows: (String, String) -> Bool
    ) -> Bool {
        var later = model
        while later.revision < min(further, self.model.revision) {
            let next = later.revision
            _ = later.fold(logged[Int(next)], revision: next + 1)
            let then = later.records[type]?[id].map { $0.filter { knows(type, $0.key) } }
            if then == record { return true }
        }
        return false
    }

    /// Returns the records that may be missing on a device that waits for parts of a snapshot:
    /// those of the parts' types that did not change since the device began.
    private func absence(
        on device: DeviceMachine, _ store: DeviceStore
    ) throws -> Model.Absence? {
        guard let pending = try store.pendingSnapshot else {
            device.seededAt = nil
            return nil
        }
        // Parts of a newer snapshot may have replaced those of the first.
        let revision = min(device.seededAt ?? .max, pending.manifest.revision)
        device.seededAt = revision
        guard try pending.manifest.revision > store.revision else {
            let parts = pending.manifest.parts.filter { pending.names.contains($0.name) }
            let types = Set(parts.flatMap(\.types).map(\.name))
            return Model.Absence(includes: types.contains, until: revision)
        }
        // What the manifest counts does not do: it is newer than the device, and no longer has a record that is
        // still missing there, and of whose deletion the device has yet to hear.
        let plan = app.seeding
        let names = plan.classes.map(\.name) + [SeedingPlan.restName]
        let numbers = names.indices.filter { pending.names.contains(names[$0]) }
        return Model.Absence(
            includes: { type in numbers.contains { plan.condition(of: type, in: $0) != nil } },
            until: revision)
    }

    /// Checks that every committed save is queued, accepted, or kept as refused.
    private func account(_ device: DeviceMachine, store: DeviceStore) throws {
        let queued = Set(try store.queuedIdentifiers())
        let parked = Set(try store.parked().map(\.identifier))
        for identifier in ledger.order {
            guard let save = ledger.saves[identifier], save.device == device.number else {
                continue
            }
            if let accepted = save.revision {
                if parked.contains(identifier) {
                    throw failure(
                        "set \(identifier) was accepted at \(accepted) and parked as well")
                }
                continue
            }
            if queued.contains(identifier) || parked.contains(identifier) || save.isDecided {
                continue
            }
            throw failure("device \(device.number) lost the saved set \(identifier)")
        }
    }

    /// Stops all faults, delivers all events, and compares all devices and the server.
    func converge() throws {
        try stopFaults()
        try comeToRest()
        try compareAll()
    }

    /// Ends all faults, and switches the server on.
    func stopFaults() throws {
        isConverging = true
        faults = .none
        // A device that joins this late begins as the others did.
        faults.snapshots = options.faults.snapshots
        for device in devices {
            device.isolatedUntil = 0
            device.portalUntil = 0
            device.disk.heal()
        }
        server.disk.heal()
        try startServer()
        try updateAll()
        if options.writesExternal {
            server.takeExternalWrites(now: serverTime)
            try readLog()
        }
    }

    /// Switches every device on, and lets them exchange until there is nothing to send or to fetch.
    func comeToRest() throws {
        try drain()
        // No device has been touched yet.
        for device in devices {
            guard let queued = try device.node?.store.queuedIdentifiers(), !queued.isEmpty else {
                continue
            }
            throw failure(
                "device \(device.number) keeps \(queued.count) sets queued until somebody wakes it")
        }
        for round in 0..<3 {
            if round > 0, app.isScripted, try devices.allSatisfy({ try isAtRest($0) }) { return }
            for device in devices {
                try start(device)
                try handle(.wake(isUrgent: true), on: device)
            }
            try drain()
        }
    }

    private func isAtRest(_ device: DeviceMachine) throws -> Bool {
        guard let store = device.node?.store else { return false }
        return try isAtEnd(store, device) && store.outboxCount == 0 && store.pendingSnapshot == nil
    }

    /// Returns whether a device has no reason to ask for more. A device whose person sees a part is not
    /// told of revisions that do not concern him.
    private func isAtEnd(_ store: DeviceStore, _ device: DeviceMachine) throws -> Bool {
        try store.revision == model.revision || rights?.last[device.number] != nil
    }

    /// Delivers all messages that are under way. A world takes some hundred events for it.
    func drain() throws {
        let longest = 4_000 * (devices.count + 1)
        var delivered = 0
        while let (time, event) = queue.take() {
            now = max(now, time)
            try step(event)
            delivered += 1
            guard delivered < longest else {
                throw failure("the world does not come to rest after faults have stopped")
            }
        }
    }

    /// Gives up external writes that no set can carry.
    private func dropWithheld() throws {
        for device in devices {
            guard let store = device.node?.store else { continue }
            for record in try store.withheld() {
                try store.write(now: localTime(device)) { _ in try store.drop(record) }
            }
        }
    }

    /// Compares every device with the server, and the server with its log.
    func compareAll() throws {
        try dropWithheld()
        try checkConfirmations()
        if let difference = model.difference(from: try server.state()) {
            throw failure("the server's log and its tables differ: \(difference)")
        }
        if let problem = try temporaryID() { throw failure(problem) }
        for device in devices {
            guard let node = device.node else { throw failure("device \(device.number) is off") }
            let revision = try node.store.revision
            guard try isAtEnd(node.store, device) else {
                throw failure(
                    "device \(device.number) rests at revision \(revision), the server at"
                        + " \(model.revision)")
            }
            let queued = try node.store.queuedIdentifiers()
            guard queued.isEmpty else {
                throw failure("device \(device.number) rests with \(queued.count) queued sets")
            }
            guard try node.store.slicedUpTo == nil else {
                throw failure("device \(device.number) rests between two revisions")
            }
            guard try node.store.pendingSnapshot == nil else {
                throw failure("device \(device.number) rests with parts that it waits for")
            }
            try check(device)
            let expected = try compareSight(of: device, node.store)
            if let difference = expected.difference(from: try node.store.shownState()) {
                throw failure("device \(device.number) shows something else: \(difference)")
            }
        }
    }

    /// Returns a sentence about a temporary id in the server's tables; nil if there is none.
    private func temporaryID() throws -> String? {
        let state = try server.state()
        for table in server.tables {
            let type = table.type
            for (id, record) in (state[type.name] ?? [:]).sorted(by: { $0.key < $1.key }) {
                if id.isTemporary { return "a temporary id has come to rest: \(type.name) \(id)" }
                for reference in type.references {
                    guard let value = record[reference.attribute],
                        RecordID(value)?.isTemporary == true
                    else { continue }
                    return "a temporary id has come to rest: \(type.name) \(id) has"
                        + " \(reference.attribute) \(Journal.text(value))"
                }
            }
        }
        return nil
    }
}
