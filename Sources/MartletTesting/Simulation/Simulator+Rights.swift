internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit
internal import SQLiteRecords

/// Worlds with policies: people's rights change, and an independent judge compares what they get and what
/// they may change with the policies.
extension Simulator {
    /// The server's time.
    var serverTime: Int64 { rights?.serverTime(now) ?? now }

    /// Returns the person who uses a device, as the token says.
    func sender(_ device: Int) -> Principal {
        rights?.people[device] ?? Principal(name: "staff")
    }

    /// Returns what a person sees; nil if it is everything.
    /// - Parameter model: The records; nil for those at the end of the log.
    func sight(
        of person: Principal, in model: Model? = nil
    ) throws -> SimulatedRights.Sight? {
        guard let schema = server.schema else { return nil }
        return try rights?.sight(of: person, in: model ?? self.model, schema, now)
    }

    /// Gives the server policies, before it starts.
    func limit(by rights: SimulatedRights) {
        self.rights = rights
        server.allowance = .serverWithPolicies
    }

    // MARK: - Changes

    func changeRights() throws {
        guard !isConverging, let change = rights?.change() else {
            if !isConverging { planRights() }
            return
        }
        planRights()
        switch change {
        case .person(let device):
            let person = sender(device)
            tell(.device(device)) { "its person has the roles \(person.roles), \(person.claims)" }
            note("rights", device)
            for index in listeners.indices where listeners[index].device == device {
                listeners[index].request.principal = person
                listeners[index].request.mustExchange = true
            }
            try push()
        case .day: note("day", 0, at: .server)
        case .file:
            note("rules", 0, at: .server)
            guard server.isUp else { return }
            server.close()
            dropConnections()
            try startServer()
        }
    }

    /// Plans the next change of rights.
    func planRights() {
        guard rights?.changes == true, let pause = rights?.random.below(60_000) else { return }
        queue.put(.changeRights, at: now + 1_000 + Int64(pause))
    }

    // MARK: - Answers

    /// A request of a batch, as the server got it and answered it.
    struct Exchange {
        let request: WaitingRequest
        let body: [UInt8]
        let answer: ServerMachine.Answer
    }

    /// Compares the answers of a batch and the verdicts in them with the policies.
    /// - Parameter before: The folded log before the batch.
    func checkRights(
        _ exchanges: [Exchange], _ entries: [ServerMachine.Entry], since before: Model
    ) throws {
        guard let schema = server.schema, rights != nil else { return }
        guard let program = try rights?.program(schema) else {
            // Without policies everyone gets everything.
            rights?.hadEverything.formUnion(exchanges.map(\.request.device))
            return
        }
        var replay = Replay(model: before, entries: entries[...])
        let requests = try exchanges.map { try SyncCoder.decodeRequest($0.body) }
        // An answer from memory may be made before the log has an external write, and be read after it.
        let late = entries.contains { ledger.saves[$0.identifier] == nil }
        let named = Set(requests.flatMap { $0.changeSets.compactMap(\.identifier) })
        replay.fold { named.contains($0.identifier) }
        for (exchange, request) in zip(exchanges, requests) {
            let device = exchange.request.device
            let bytes = try inflated(exchange.answer.body)
            let answer =
                exchange.answer.status == 200 ? try SyncCoder.decodeAnswer(bytes) : nil
            if let answer { noteIDs(answer, device) }
            guard let viewer = rights?.viewer(exchange.request.sender, now) else { continue }
            let judge = RightsJudge(
                program: program, viewer: viewer, schema: schema,
                permanent: rights?.permanent[device] ?? [:])
            for set in request.changeSets {
                try checkVerdict(on: set, in: answer, by: judge, &replay, device)
            }
            guard let answer else { continue }
            try checkSight(exchange.request, bytes, after: late ? [before, model] : [model])
            tell(.device(device)) {
                "is told what is new from revision \(request.maxRevision) to \(answer.maxRevision)"
                    + "\(answer.more ? ", and that there is more" : "")"
                    + " for view \(answer.view.map(String.init) ?? "-")"
            }
        }
    }

    /// The log of a batch, as far as the sets before one have led.
    struct Replay {
        var model: Model
        var entries: ArraySlice<ServerMachine.Entry>

        /// Folds the next entries.
        mutating func fold(until isEnd: (ServerMachine.Entry) -> Bool) {
            while let next = entries.first, !isEnd(next) { take(next) }
        }

        mutating func take(_ entry: ServerMachine.Entry) {
            _ = model.fold(entry.set, revision: entry.revision)
            entries.removeFirst()
        }
    }

    private func checkVerdict(
        on set: ChangeSet, in answer: SyncAnswer?, by judge: RightsJudge, _ replay: inout Replay,
        _ device: Int
    ) throws {
        guard let identifier = set.identifier else { return }
        if replay.entries.contains(where: { $0.identifier == identifier }) {
            replay.fold { $0.identifier == identifier }
            switch try judge.finding(on: set, after: replay.model) {
            case .allowed, .unknown: break
            case .hidden(let record), .forbidden(let record):
                throw failure(
                    "device \(device): a set was accepted although the policies do not allow its"
                        + " change of \(record.type) \(record.id)")
            }
            return replay.fold { $0.identifier != identifier }
        }
        guard rights?.judged.contains(identifier) == false else { return }
        let verdict = answer?.changeSets.first { $0.identifier == identifier }
        guard verdict?.retryAfter == nil else { return }
        // Without a verdict, the set may be refused in an answer that follows.
        rights?.judged.insert(identifier)
        switch try judge.finding(on: set, after: replay.model) {
        case .allowed where verdict?.reason == .permission:
            throw failure(
                "device \(device): a set was refused for a missing right although the policies"
                    + " allow it: \(verdict?.message ?? ""): \(Journal.text(set))")
        case .allowed:
            guard verdict == nil || verdict?.reason == .constraint,
                try isNearHidden(set, judge, replay.model)
            else { return }
        case .hidden, .forbidden, .unknown:
            if verdict?.reason == .permission { report.forbidden += 1 }
        }
        rights?.excused.insert(identifier)
    }

    /// Returns whether the sender may not see records of a set's types or of types next to these.
    private func isNearHidden(
        _ set: ChangeSet, _ judge: RightsJudge, _ model: Model
    ) throws -> Bool {
        let rows = FoldedRows(model, judge.schema)
        let visible = try rows.visible(by: judge.program, to: judge.viewer, rows.lookups())
        return nearTypes(Set(set.types.map(\.name)))
            .contains { model.records[$0]?.count ?? 0 > visible[$0]?.count ?? 0 }
    }

    /// Returns whether the device that saved an entry was not shown a record before it.
    func isHidden(
        _ record: Ledger.Record, from author: Int?, in before: Model
    ) throws -> Bool {
        guard let device = author, let schema = server.schema,
            let program = try rights?.program(schema)
        else { return false }
        let senders = served.filter { $0.device == device }.map(\.sender)
        let rows = FoldedRows(before, schema)
        return try (senders.isEmpty ? [sender(device)] : senders).contains { sender in
            guard let viewer = rights?.viewer(sender, now) else { return false }
            let visible = try rows.visible(by: program, to: viewer, rows.lookups())
            return visible[record.type]?.contains(record.id) != true
        }
    }

    /// Notes the permanent ids that an answer tells.
    private func noteIDs(_ answer: SyncAnswer, _ device: Int) {
        for set in answer.changeSets where set.identifier != nil && set.conflict == false {
            for changes in set.types {
                for entry in changes.entries {
                    guard let old = entry.oldID else { continue }
                    let record = Ledger.Record(type: changes.name, id: old)
                    rights?.permanent[device, default: [:]][record] = entry.id
                }
            }
        }
    }

    /// Checks that an answer has no text of a record that the person may not see.
    /// - Parameter models: The states of the records that the answer may have been made from, the last
    ///   one at the end.
    private func checkSight(
        _ request: WaitingRequest, _ bytes: [UInt8], after models: [Model]
    ) throws {
        for model in models.reversed() {
            guard let sight = try sight(of: request.sender, in: model) else {
                rights?.hadEverything.insert(request.device)
                return
            }
            guard hiddenText(in: bytes, sight, model) == nil else { continue }
            report.moves += rights?.note(sight, of: request.device, at: model) ?? 0
            return
        }
        guard let sight = try sight(of: request.sender) else { return }
        try expectNothingHidden(in: bytes, sight, "an answer to device \(request.device)")
    }

    /// Checks that bytes have no text but of records in a sight, as they are now.
    func expectNothingHidden(
        in bytes: [UInt8], _ sight: SimulatedRights.Sight, _ what: String
    ) throws {
        guard let text = hiddenText(in: bytes, sight, model) else { return }
        throw failure("\(what) holds “\(text)”, which its person may not see")
    }

    /// Returns a text that no record of a sight has; nil if there is none.
    private func hiddenText(
        in bytes: [UInt8], _ sight: SimulatedRights.Sight, _ model: Model
    ) -> String? {
        var texts = Set(Marks.found(in: bytes))
        guard !texts.isEmpty else { return nil }
        for (type, ids) in sight {
            for id in ids {
                guard let record = model.records[type]?[id] else { continue }
                texts.subtract(Marks.found(in: record))
            }
        }
        return texts.min()
    }

    /// Notes that the verdicts of a batch are not known, because the server went down.
    func forgetVerdicts(_ bodies: [[UInt8]]) throws {
        guard rights != nil else { return }
        for body in bodies {
            let sets = try SyncCoder.decodeRequest(body).changeSets.compactMap(\.identifier)
            rights?.judged.formUnion(sets)
            rights?.excused.formUnion(sets)
        }
    }

    // MARK: - Devices

    /// Returns the states that a device may be in at its revision: what its answers showed it.
    func candidates(for device: DeviceMachine, at revision: Revision) -> [Model] {
        guard let rights, rights.last[device.number] != nil else { return [device.model] }
        let sights = rights.sights[device.number]?[revision] ?? []
        let whole = rights.hadEverything.contains(device.number) ? [device.model] : []
        return whole + sights.map { device.model.only($0) }
    }

    /// Checks a device that tells the server that nothing is left of hidden records.
    func checkPurge(_ body: [UInt8], of device: DeviceMachine) throws {
        guard rights != nil, let receipt = try SyncCoder.decodeRequest(body).purged else { return }
        report.purges += 1
        guard let sights = rights?.sights[device.number]?[receipt.revision],
            receipt.view != 0
        else { return }
        try expectPurged(device, sights)
    }

    /// Checks that no table of a device's file has a text of a record that its person may not see.
    /// - Parameter sights: What the person may see at the device's revision.
    func expectPurged(_ device: DeviceMachine, _ sights: [SimulatedRights.Sight]) throws {
        let texts = try device.texts()
        var leak: (table: String, text: String)?
        for sight in sights {
            leak = nil
            for (table, texts) in texts.sorted(by: { $0.key < $1.key }) where leak == nil {
                leak = rights?.leaked(texts, seeing: sight, on: device.number)
                    .map { (table, $0) }
            }
            if leak == nil { return }
        }
        guard let leak else { return }
        throw failure(
            "device \(device.number) keeps “\(leak.text)” in \(leak.table), which its person may"
                + " not see")
    }

    /// Checks that the server says of no device that nothing is left in it while it has records that the view
    /// which it was given last does not show.
    func checkConfirmations() throws {
        guard rights != nil, server.isUp else { return }
        let confirmed = try server.confirmedDevices()
        for device in devices {
            guard let store = device.node?.store, let shown = confirmed[try store.clientID],
                try !store.hasOpenCapture
            else { continue }
            for (type, records) in try store.confirmedState() {
                guard let ids = shown[type], let id = Set(records.keys).subtracting(ids).min()
                else { continue }
                throw failure(
                    "device \(device.number) counts as one that has confirmed, and has \(type) \(id),"
                        + " which the view that it was given last does not show")
            }
        }
    }

    /// Compares a device with what its person may see.
    func compareSight(of device: DeviceMachine, _ store: DeviceStore) throws -> Model {
        guard let sight = try sight(of: sender(device.number)) else { return model }
        try expectPurged(device, [sight])
        return model.only(sight)
    }

    // MARK: - Refusals

    /// Returns whether rights explain the refusal of a save.
    func isExcused(_ receipt: Receipt, _ records: [Ledger.Record], _ save: Ledger.Save) -> Bool {
        guard let rights, mix.people == .together else { return false }
        if rights.excused.contains(receipt.identifier) { return true }
        let hiddenAt = rights.hiddenAt[save.device] ?? [:]
        if records.contains(where: { hiddenAt[$0] ?? -1 >= save.seenAll }) { return true }
        guard receipt.reason != .permission else { return false }
        let movedAt = rights.movedAt[save.device] ?? [:]
        let near = nearTypes(Set(records.map(\.type)))
        if near.contains(where: { movedAt[$0] ?? -1 >= save.seenAll }) { return true }
        // It may refer to a record that its person made and may not see.
        return receipt.reason == .dependency
            && hiddenAt.contains { near.contains($0.key.type) && $0.value >= save.seenAll }
    }
}

extension DeviceMachine {
    /// Returns the texts of edits in all tables of the file, by table.
    fileprivate func texts() throws -> [String: Set<String>] {
        let reader = try Connection(path: "device.sqlite", mode: .readOnly, vfs: disk.vfsName)
        let names = try reader.statement(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL"
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        var texts: [String: Set<String>] = [:]
        for name in names {
            let rows = try reader.statement("SELECT * FROM \(SQLName.quoted(name))")
            while try rows.step() {
                for column in 0..<rows.columnCount {
                    texts[name, default: []].formUnion(Marks.found(in: rows.blob(column)))
                }
            }
            rows.reset()
        }
        return texts
    }
}
