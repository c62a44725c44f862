import MartletModel
import MartletProtocol
import MartletServerCore
import MartletStore
import SQLiteFaults
import SmallWorlds

@testable import Martlet
@testable import MartletDevice

/// The way between the device and its server.
extension HardTimes {
    func begin(_ spell: Spell) throws {
        self.spell = spell
        spellNumber += 1
        begun = now
        budget.begin()
        tell("— \(spell)")
        if case .well = spell.exchanges, !spell.mayStop {
            wellSince = wellSince ?? now
        } else {
            wellSince = nil
        }
        // What is on the way ends, or is never heard of again.
        for exchange in underWay.sorted() where random.below(2) == 0 {
            put(.event(.failed(exchange: exchange, Self.isCut)), after: latency())
        }
        underWay = []
        if let old = stream {
            stream = nil
            put(.event(ended(old.number)), after: Int64(random.below(40_000)))
        }
        startPeople()
    }

    /// Whether the server's own word may stop the device now, or has just done so.
    var mayStop: Bool { spell.mayStop || now - begun < 2_000 }

    static let isCut = SyncError(.offline, "The connection was cut.")

    private func answered(
        _ exchange: Int, _ status: Int, _ body: [UInt8], retryAfter: Int64? = nil
    ) -> Occurrence {
        .event(.answered(exchange: exchange, status: status, body: body, retryAfter: retryAfter))
    }

    // MARK: - Exchanges

    func send(_ exchange: Int, _ body: [UInt8]) {
        underWay = [exchange]
        moved[exchange] = now
        switch spell.exchanges {
        case .silent: break
        case .refused:
            put(.event(.failed(exchange: exchange, Self.isCut)), after: latency())
        case .page(let status, let page, let retryAfter):
            put(
                answered(exchange, status, Array(page.utf8), retryAfter: retryAfter),
                after: latency())
        case .said(let problem):
            put(answered(exchange, problem.status, SyncCoder.encode(problem)), after: latency())
        case .narrow(let most) where body.count > most:
            put(.event(.progress(exchange: exchange)), after: 5_000)
            put(.event(.failed(exchange: exchange, Self.isCut)), after: 10_000)
        case .slow(let speed):
            let time = tellProgress(exchange, bytes: body.count, speed)
            put(.arrives(exchange: exchange, body: body, spell.exchanges), after: time)
        case .repeated where !answers.isEmpty && random.below(8) > 0:
            put(answered(exchange, 200, random.pick(answers)), after: latency())
        case .well, .oneWay, .narrow, .repeated:
            put(.arrives(exchange: exchange, body: body, spell.exchanges), after: latency())
        }
    }

    func arrive(_ exchange: Int, _ body: [UInt8], _ way: Spell.Exchanges) throws {
        let answer = try server.answer(body)
        var time = latency()
        switch way {
        case .oneWay:
            put(.event(.failed(exchange: exchange, Self.isCut)), after: time)
            return try push()
        case .narrow(let most) where answer.body.count > most:
            put(.event(.failed(exchange: exchange, Self.isCut)), after: 10_000)
            return try push()
        case .slow(let speed): time = tellProgress(exchange, bytes: answer.body.count, speed)
        default: break
        }
        put(answered(exchange, answer.status, answer.body), after: time)
        try push()
    }

    /// The device hears of bytes while they move.
    /// - Returns: The milliseconds that all of them take.
    private func tellProgress(_ exchange: Int, bytes: Int, _ speed: Int) -> Int64 {
        let time = Int64(bytes * 1_000 / speed)
        for moment in stride(from: 20_000, to: time, by: 20_000) {
            put(.event(.progress(exchange: exchange)), after: moment)
        }
        return time + 1
    }

    // MARK: - The stream

    private func ended(
        _ number: Int, _ problem: Problem? = nil, retryAfter: Int64? = nil, inBatch: Bool = false
    ) -> DeviceNode.Event {
        .streamEnded(
            number, status: problem?.status, message: problem?.detail ?? Self.isCut.message,
            problem: problem, retryAfter: retryAfter ?? problem?.retryAfter, inBatch: inBatch)
    }

    func openStream(_ number: Int, _ cursor: DeltaCursor) throws {
        let opened = Occurrence.event(.streamOpened(number))
        switch spell.streams {
        case .silent:
            put(opened, after: 10)
            put(.event(ended(number)), after: 40_000)
        case .refused: put(.event(ended(number)), after: latency())
        case .answered(let problem, let retryAfter):
            put(.event(ended(number, problem, retryAfter: retryAfter)), after: latency())
        case .short(let isInBatch):
            put(opened, after: 10)
            put(
                .event(ended(number, inBatch: isInBatch)),
                after: 20 + Int64(random.below(30_000)))
        case .repeated:
            put(opened, after: 10)
            for batch in batches.shuffled(using: &random).prefix(random.below(3)) {
                put(.event(.streamed(number, batch)), after: 15)
            }
            put(.event(ended(number)), after: 20)
        case .well, .late:
            var request = DeltaRequest(
                principal: Principal(name: "staff"), since: cursor.since, byteLimit: 20_000)
            request.clientID = cursor.clientID
            request.dataSet = cursor.dataSet
            request.lineage = cursor.lineage
            request.takesEntriesOnly = true
            request.mostEntryBytes = 4_000
            if case .failure(let problem)? = server.deltas(request) {
                return put(.event(ended(number, problem)), after: latency())
            }
            request.lineage = nil
            stream = Listener(number: number, asked: now, request: request, arrival: now)
            bring(.streamOpened(number))
            put(.sign(stream: number), after: 20_000)
            try push()
        }
    }

    /// Sends the device something over the stream, in order.
    private func bring(_ event: DeviceNode.Event) {
        guard let listener = stream else { return }
        var delay: Int64 = 5 + Int64(random.below(50))
        if case .late(let milliseconds) = spell.streams { delay += milliseconds }
        let arrival = max(listener.arrival, now + delay)
        stream?.arrival = arrival
        put(.event(event), after: arrival - now)
    }

    func sign(_ number: Int) {
        guard let listener = stream, listener.number == number else { return }
        bring(.streamSign(number, elapsed: now - listener.asked))
        put(.sign(stream: number), after: 20_000)
    }

    /// Sends what is new over the stream.
    func push() throws {
        while let listener = stream,
            case .success(let batch)? = server.deltas(listener.request), !batch.isEmpty
        {
            stream?.request.advance(past: batch)
            batches = batches.suffix(7) + [batch.json]
            bring(.streamed(listener.number, batch.json))
        }
    }

    // MARK: - Comparisons

    /// Compares the device's data with the server's, while something between may mix answers up. Both have the
    /// same, so nothing is found.
    func compare() throws {
        _ = try compare(other.store) { try server.answer($0).body }
        var isMixed = false
        switch spell.exchanges {
        case .well: break
        case .repeated: isMixed = true
        default: return
        }
        do {
            let findings = try compare(node.store) { body in
                let own = try server.answer(body).body
                let others = comparisons + answers
                return isMixed && random.below(3) == 0 && !others.isEmpty
                    ? random.pick(others) : own
            }
            guard findings.isEmpty else { throw failure("a comparison found \(findings)") }
        } catch let error as SyncError {
            tell("no comparison: \(error.kind) \(error.message)")
            guard error.remedy == .wait, isMixed || error.kind == .busy else {
                throw failure("a comparison failed (\(error.kind)): \(error.message)")
            }
        }
    }

    private func compare(
        _ store: DeviceStore, exchange: ([UInt8]) throws -> [UInt8]
    ) throws -> [CheckReport.Finding] {
        var run = CheckRun(repairing: .revert, batchRecords: 1 + random.below(12))
        while let body = try run.request(store, now: now) {
            let answer = try exchange(body)
            comparisons = comparisons.suffix(23) + [answer]
            try run.take(answer, store, now: now)
        }
        return run.report.findings
    }

    // MARK: - Downloads

    private static let plan = SeedingPlan(classes: [.init(name: "first", types: ["teams": .all])])

    /// The newest snapshot; one is made if the last is some revisions behind.
    private func newest() throws -> SmallSnapshot? {
        if let last = snapshots.last, try other.store.revision < last.manifest.revision + 20 {
            return last
        }
        snapshots = snapshots.suffix(1) + [try server.snapshot(Self.plan)]
        return snapshots.last
    }

    func fetchSnapshot(_ number: Int) throws {
        guard case .well = spell.downloads, let snapshot = try newest(),
            let first = snapshot.manifest.parts.first, let file = snapshot.files[first.name]
        else {
            let isThere = if case .none = spell.downloads { false } else { true }
            let event = DeviceNode.Event.snapshotFailed(number, cut: isThere ? Self.isCut : nil)
            return put(.event(event), after: latency())
        }
        disk.install(file, at: node.store.snapshotPath)
        put(.event(.snapshotFetched(number, snapshot.manifest)), after: latency())
    }

    func fetchPart(_ number: Int, _ part: String, of manifest: SnapshotManifest) throws {
        let event: DeviceNode.Event
        switch spell.downloads {
        case .well:
            let newest = try newest()
            if let kept = snapshots.first(where: { $0.manifest == manifest }),
                let file = kept.files[part]
            {
                disk.install(file, at: "part.sqlite")
                event = .partFetched(number, path: "part.sqlite")
            } else {
                event = .partGone(number, newest: newest?.manifest)
            }
        case .cut: event = .partFailed(number, Self.isCut, retryAfter: nil)
        case .gone: event = .partGone(number, newest: manifest)
        case .none: event = .partGone(number, newest: nil)
        case .busy(let retryAfter):
            event = .partFailed(
                number, SyncError(.busy, "The server has too much to do."), retryAfter: retryAfter)
        }
        put(.event(event), after: latency())
    }
}
