internal import CompressionKit
internal import Martlet
internal import MartletProtocol
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit

extension Simulator {
    func start(_ device: DeviceMachine) throws {
        guard !device.isUp else { return }
        maybeBreak(device.disk)
        do {
            let usesSnapshots = random.chance(faults.snapshots)
            try device.start(usesSnapshots: usesSnapshots, randomBits: bits())
        } catch let error as SQLiteError where !isSettling {
            report.add("start failed \(error.code)", device.number)
            return stop(device)
        }
        mend(device.disk)
        if device.disk.isDown { return stop(device) }
        report.add("start", device.number)
        if let problem = try device.node?.store.contradiction() {
            throw failure("device \(device.number) after its start: \(problem)")
        }
        try handle(.wake(isUrgent: true), on: device)
    }

    /// A device is told to throw its tables away and to fetch everything anew.
    func beginAnew(_ device: DeviceMachine) throws {
        report.newBeginnings += 1
        report.add("anew", device.number)
        maybeBreak(device.disk)
        do {
            try device.beginAnew(now: localTime(device), randomBits: bits())
        } catch let error as SQLiteError where !isSettling {
            report.add("anew failed \(error.code)", device.number)
            if device.disk.isDown { return stop(device) }
        }
        mend(device.disk)
        if device.disk.isDown { return stop(device) }
        try start(device)
    }

    /// Switches a device off, and on again after a while.
    func stop(_ device: DeviceMachine) {
        report.deviceCrashes += 1
        report.add("crash", device.number)
        listeners.removeAll { $0.device == device.number }
        device.stop(&random)
        queue.put(.restart(device: device.number), at: now + 100 + Int64(random.below(20_000)))
    }

    /// Lets a file operation fail some time soon, now and then.
    func maybeBreak(_ disk: FaultDisk) {
        let roll = random.below(1_000)
        if roll < faults.diskCrashes {
            disk.failAfter(operations: 1 + random.below(40), kind: .crash)
        } else if roll < faults.diskCrashes + faults.diskErrors {
            report.diskErrors += 1
            disk.failAfter(
                operations: 1 + random.below(40), kind: random.chance(50) ? .ioError : .full,
                lasting: random.chance(30))
        }
    }

    func mend(_ disk: FaultDisk) {
        if !disk.isDown { disk.heal() }
    }

    func localTime(_ device: DeviceMachine) -> Int64 {
        now + device.skew
    }

    // MARK: - Events of a device

    func handle(_ event: DeviceNode.Event, on device: DeviceMachine) throws {
        guard let node = device.node else { return }
        if random.below(1_000) < faults.clockJumps {
            device.skew += Int64(random.below(7_200_000)) - 3_600_000
        }
        if random.below(1_000) < faults.partitions {
            report.partitions += 1
            device.isolatedUntil = now + Int64(random.below(120_000))
        }
        maybeBreak(device.disk)
        let actions = node.handle(event, now: localTime(device))
        if device.disk.isDown || random.below(1_000) < faults.crashes { return stop(device) }
        mend(device.disk)
        for action in actions {
            try perform(action, of: device)
        }
        if random.below(1_000) < faults.streamChanges {
            device.isLive.toggle()
            for action in node.setLive(device.isLive, now: localTime(device)) {
                try perform(action, of: device)
            }
        }
        if random.below(1_000) < faults.newBeginnings { try beginAnew(device) }
    }

    private func perform(_ action: DeviceNode.Action, of device: DeviceMachine) throws {
        switch action {
        case .send(let exchange, let body):
            send(exchange, body: Gzip.compress(body), from: device)
        case .openStream(let stream, let cursor):
            queue.put(
                .listen(
                    device: device.number, life: device.life, stream: stream, cursor),
                at: now + 1 + Int64(random.below(faults.longestDelay)))
        case .closeStream(let stream):
            listeners.removeAll { $0.device == device.number && $0.stream == stream }
        case .fetchSnapshot(let number):
            queue.put(
                .snapshotAsked(device: device.number, life: device.life, number: number),
                at: now + 1 + Int64(random.below(faults.longestDelay)))
        case .fetchPart(let number, let part, let manifest):
            queue.put(
                .partAsked(
                    device: device.number, life: device.life, number: number, part: part.name,
                    manifest.revision),
                at: now + 1 + Int64(random.below(faults.longestDelay)))
        case .setTimer(let number, let milliseconds),
            .setStreamTimer(let number, let milliseconds),
            .setPartTimer(let number, let milliseconds):
            queue.put(
                .deviceEvent(device: device.number, life: device.life, .timer(number)),
                at: now + milliseconds)
        case .applyNext(let exchange):
            queue.put(
                .deviceEvent(
                    device: device.number, life: device.life, .applyNext(exchange: exchange)),
                at: now)
        case .notify(.applied(let applied, let revision)):
            report.add("applied \(revision)", device.number)
            report.refused += applied.receipts.count { $0.outcome == .refused }
        case .notify(.streamed(let applied, let revision)):
            report.add("streamed \(revision)", device.number)
            report.batches += 1
            report.refused += applied.receipts.count { $0.outcome == .refused }
        case .notify(.seeded(let installed)):
            report.parts += 1
            report.add("part \(installed.name)", device.number)
            report.refused += installed.report.receipts.count { $0.outcome == .refused }
        case .notify(.seedingFailed(let error, _)):
            report.add("no part: \(error.kind.name)", device.number)
            guard [.offline, .busy, .storage].contains(error.kind) else {
                throw failure("device \(device.number) cannot take a part: \(error.message)")
            }
        case .notify(.live(let isLive)): report.add("live \(isLive)", device.number)
        case .notify(.exchanged(let revision, _)):
            report.add("exchanged \(revision)", device.number)
        case .notify(.failed(let error, let retryIn)):
            report.add("failed \(error.kind.name)", device.number)
            let isExpected = [.offline, .busy, .storage].contains(error.kind)
            guard isExpected, retryIn != nil else {
                throw failure("device \(device.number) stopped: \(error.message)")
            }
        }
    }

    private func send(_ exchange: Int, body: [UInt8], from device: DeviceMachine) {
        guard now >= device.isolatedUntil else {
            report.lostMessages += 1
            return
        }
        let copies = random.chance(faults.doubledRequests) ? 2 : 1
        report.doubledMessages += copies - 1
        for _ in 0..<copies {
            if random.chance(faults.lostRequests) {
                report.lostMessages += 1
                continue
            }
            queue.put(
                .request(
                    device: device.number, life: device.life, exchange: exchange, body: body),
                at: now + 1 + Int64(random.below(faults.longestDelay)))
        }
    }

    func inflated(_ body: [UInt8]) throws -> [UInt8] {
        try Gzip.inflate(
            body, limit: Limits.inflatedBytes, ratio: Limits.inflationRatio,
            ratioFloor: Limits.inflationRatioFloor)
    }

    // MARK: - People

    /// One person's save, booked with what their device had seen.
    func save(_ device: DeviceMachine) throws {
        guard let node = device.node else { return }
        saves += 1
        let token = "t\(saves)"
        let before = try node.store.queuedIdentifiers().count
        var person = SeededRandom(seed: random.next())
        maybeBreak(device.disk)
        do {
            try node.store.write(now: localTime(device)) { context in
                try Workload(token: token).run(context, &person)
            }
        } catch let error as StoreError where error.constraint?.kind == .foreignKey {
            // Whose parent is still to come, of that the references cannot be changed yet.
            report.add("no parent yet", device.number)
            mend(device.disk)
            return
        } catch let error as SQLiteError {
            // A constraint, or the disk: nothing was saved, unless the machine went down during
            // the commit, when it may have been.
            report.add("save failed \(error.code)", device.number)
            if device.disk.isDown { stop(device) } else { mend(device.disk) }
            return
        }
        if device.disk.isDown {
            // The commit was durable and the machine went down in the checkpoint that SQLite makes
            // after it, whose failure is no failure of the commit. The file cannot be asked now.
            report.add("down after a commit", device.number)
            stop(device)
            return
        }
        mend(device.disk)
        let queued = try node.store.queuedIdentifiers().count
        guard queued > before, let newest = try node.store.newestQueued() else { return }
        report.saves += 1
        report.add(newest.identifier, device.number)
        var seen: [Ledger.Record: Revision] = [:]
        for (type, id, revision) in newest.seen {
            seen[Ledger.Record(type: type, id: id)] = revision
        }
        ledger.add(
            Ledger.Save(
                device: device.number, identifier: newest.identifier, token: token, seen: seen,
                seenAll: try seenAll(node.store)))
        try handle(.wake(isUrgent: random.chance(30)), on: device)
    }

    /// What a person can know of records their save does not name: while parts of a snapshot are
    /// still to come, nothing.
    private func seenAll(_ store: DeviceStore) throws -> Revision {
        try store.pendingSnapshot == nil ? store.revision : 0
    }

    /// A person looks at what was refused: drops one, sends one again, or leaves it.
    func decide(_ device: DeviceMachine) throws {
        guard let node = device.node, let parked = random.pick(try node.store.parked()) else {
            return
        }
        do {
            if random.chance(30) {
                try node.store.drop(parked.identifier, now: localTime(device))
                ledger.decide(parked.identifier)
            } else if random.chance(60) {
                let identifier = try node.store.retry(parked.identifier, now: localTime(device))
                ledger.decide(parked.identifier)
                if let newest = try node.store.newestQueued(), newest.identifier == identifier {
                    var seen: [Ledger.Record: Revision] = [:]
                    for (type, id, revision) in newest.seen {
                        seen[Ledger.Record(type: type, id: id)] = revision
                    }
                    ledger.add(
                        Ledger.Save(
                            device: device.number, identifier: identifier, token: "", seen: seen,
                            seenAll: try seenAll(node.store)))
                }
                try handle(.wake(isUrgent: false), on: device)
            }
        } catch let error as StoreError where error.kind == .value {
            report.add("kept", device.number)
        }
    }
}
