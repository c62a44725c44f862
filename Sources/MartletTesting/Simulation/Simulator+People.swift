internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit

extension Simulator {
    /// A save that was committed.
    struct Committed<Result> {
        let result: Result
        /// The identifier of the last queued set; nil if no synchronised table was changed.
        let identifier: String?
    }

    /// Makes one person's save, with random edits.
    func save(_ device: DeviceMachine) throws {
        guard device.isUp, mix.saves(device.number) else { return }
        // If a device does not show all saves of its person, the person's next save may be refused.
        if mix.people != .together, try device.isOnPast() { return }
        saves += 1
        if let schema = app.random, random.chance(25) {
            var statements = RandomStatements(
                schema, seed: random.next(), mark: "t\(saves)", sendable: true)
            try runProgram(statements.transaction(foreignKeys: true), on: device)
            return try handle(.wake(isUrgent: random.chance(30)), on: device)
        }
        let mark = mix.people == .apart ? "d\(device.number)." : ""
        let token = "\(mark)t\(saves)"
        rights?.authors[saves] = device.number
        let work = workload(token, mark: mark)
        var person = SeededRandom(seed: random.next())
        // The server has to refuse what every second save may not do.
        device.node?.store.judgesSaves = rights != nil && saves.isMultiple(of: 2)
        defer { device.node?.store.judgesSaves = false }
        do {
            let committed = try commit(on: device, token: token) { context in
                guard let schema = app.random else { return try work.run(context, &person) }
                var statements = RandomStatements(
                    schema, seed: person.next(), mark: token, sendable: true)
                for _ in 0..<(1 + person.below(2)) {
                    if person.chance(50) {
                        let statement = statements.statement()
                        tell(.device(device.number)) { "its person: \(statement)" }
                        try context.rows(statement)
                    } else {
                        var edit = RandomEdit(
                            random: SeededRandom(seed: person.next()), mark: token)
                        try edit.run(context)
                    }
                }
            }
            guard committed?.identifier != nil else { return }
        } catch let error as StoreError
            where error.constraint != nil || error.kind == .value && app.random != nil
        {
            // The references of a record cannot be changed until its parent has arrived.
            note("not saved", device.number)
            return mend(device.disk)
        } catch let error as StoreError where error.kind == .permission {
            report.refusedAtOnce += 1
            note("refused at once", device.number)
            return mend(device.disk)
        } catch let error as SQLiteError {
            // A constraint or the disk has failed. Nothing was saved, unless the machine crashed
            // during the commit; then it may have been saved.
            note("save failed \(error.code)", device.number)
            return device.disk.isDown ? stop(device) : mend(device.disk)
        }
        try handle(.wake(isUrgent: random.chance(30)), on: device)
    }

    /// Returns one save's edits of Martlet's own tables.
    func workload(_ token: String, mark: String = "") -> Workload {
        var work = Workload(token: token, mark: mark)
        work.save = saves
        work.people = rights.map { Set($0.people.compactMap(\.user)).sorted() } ?? []
        return work
    }

    /// Writes to a device's file as another program, and lets the app take the write in.
    /// - Returns: The resulting sets, and the error of the script; nil if it did not fail.
    @discardableResult
    func runProgram(
        _ script: String, on device: DeviceMachine
    ) throws -> (made: [String], failure: SQLiteError?) {
        var failure: SQLiteError?
        maybeBreak(device.disk)
        tell(.device(device.number)) { "another program: \(script)" }
        do {
            try device.runProgram(script)
        } catch let error as SQLiteError {
            note("program failed \(error.code)", device.number)
            failure = error
        }
        if device.disk.isDown {
            stop(device)
            return ([], failure)
        }
        guard let store = device.node?.store else { return ([], failure) }
        let before = Set(try store.queuedIdentifiers())
        do {
            try store.write(now: localTime(device)) { _ in }
        } catch  where Self.diskCode(of: error) != nil {
            note("not taken in", device.number)
        }
        if device.disk.isDown {
            stop(device)
            return ([], failure)
        }
        mend(device.disk)
        let made = try store.queued().filter { !before.contains($0.identifier) }
        for queued in made {
            report.saves += 1
            report.add(queued.identifier, device.number)
            tell(.device(device.number)) { "that is set \(Journal.short(queued.identifier))" }
            try book(queued, token: "", of: device)
        }
        return (made.map(\.identifier), failure)
    }

    /// Runs one save on a device that is on, and notes it with the revisions that the device had
    /// seen.
    /// - Returns: The save; nil if the machine crashed after the commit.
    /// - Throws: The error of the save. The caller must then check whether the disk is down, and
    ///   repair it.
    func commit<Result>(
        on device: DeviceMachine, token: String, _ body: (WriteContext) throws -> Result
    ) throws -> Committed<Result>? {
        guard let node = device.node else { return nil }
        let before = try node.store.queuedIdentifiers().count
        maybeBreak(device.disk)
        let result = try node.store.write(now: localTime(device), body)
        if device.disk.isDown {
            // The commit was durable. The machine crashed in SQLite's following checkpoint, whose
            // failure is no failure of the commit. The file cannot be read now.
            note("down after a commit", device.number)
            stop(device)
            return nil
        }
        mend(device.disk)
        let queued = try node.store.queuedIdentifiers().count
        guard queued > before, let newest = try node.store.newestQueued() else {
            return Committed(result: result, identifier: nil)
        }
        report.saves += 1
        report.add(newest.identifier, device.number)
        if journal != nil {
            let changes = try node.store.changes(of: newest.identifier)
            tell(.device(device.number)) {
                "saves set \(Journal.short(newest.identifier)): \(Journal.text(changes))"
            }
        }
        try book(newest, token: token, of: device)
        return Committed(result: result, identifier: newest.identifier)
    }

    /// Notes a queued set with the revisions of its records that the device had seen.
    /// - Parameter hasSeenTheirs: Whether the person was shown the server's records beside the own ones, as
    ///   of a refused set.
    private func book(
        _ newest: DeviceStore.Queued, token: String, of device: DeviceMachine,
        hasSeenTheirs: Bool = false
    ) throws {
        guard let node = device.node else { return }
        var seen: [Ledger.Record: Revision] = [:]
        for (type, id) in try node.store.unshown() { seen[Ledger.Record(type: type, id: id)] = 0 }
        for (type, id, revision) in newest.seen {
            seen[Ledger.Record(type: type, id: id)] = revision
        }
        // If a record has a waiting edit, the person sees the edit, and not the remote change under
        // it.
        for (type, id, identifier) in hasSeenTheirs ? [] : newest.beneath {
            let record = Ledger.Record(type: type, id: id)
            if let shown = ledger.saves[identifier]?.seen[record], let newer = seen[record] {
                seen[record] = min(shown, newer)
            }
        }
        ledger.add(
            Ledger.Save(
                device: device.number, identifier: newest.identifier, token: token, seen: seen,
                seenAll: try seenAll(node.store), isOnPast: try device.isOnPast(),
                isBesideUnapplied: try node.store.hasUnappliedSet))
    }

    /// Returns the revision up to which a person can know records that the save does not name. It
    /// is 0 while parts of a snapshot are still to come.
    private func seenAll(_ store: DeviceStore) throws -> Revision {
        try store.pendingSnapshot == nil ? store.revision : 0
    }

    /// Lets a person decide about the refused sets: drop one, send one again, or leave it.
    func decide(_ device: DeviceMachine) throws {
        guard let node = device.node, let parked = random.pick(try node.store.parked()) else {
            return
        }
        do {
            if random.chance(30) {
                try drop(parked.identifier, on: device)
            } else if random.chance(60) {
                try retry(parked.identifier, on: device)
                try handle(.wake(isUrgent: false), on: device)
            }
        } catch let error as StoreError where error.kind == .value {
            note("kept", device.number)
        }
    }

    /// Gives a refused set up.
    func drop(_ identifier: String, on device: DeviceMachine) throws {
        guard let node = device.node else { return }
        try node.store.drop(identifier, now: localTime(device))
        ledger.decide(identifier)
        tell(.device(device.number)) { "drops the refused set \(Journal.short(identifier))" }
    }

    /// Repeats the edits of a refused set.
    /// - Returns: The new set's identifier.
    @discardableResult
    func retry(_ identifier: String, on device: DeviceMachine) throws -> String? {
        guard let node = device.node else { return nil }
        let made = try node.store.retry(identifier, now: localTime(device))
        ledger.decide(identifier)
        if let newest = try node.store.newestQueued(), newest.identifier == made {
            try book(newest, token: "", of: device, hasSeenTheirs: true)
        }
        tell(.device(device.number)) {
            "sends the refused set \(Journal.short(identifier)) again, as"
                + " \(Journal.short(made))"
        }
        return made
    }
}
