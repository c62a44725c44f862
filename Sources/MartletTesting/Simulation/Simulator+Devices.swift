internal import CompressionKit
internal import Martlet
internal import MartletDevice
internal import MartletModel
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
            try device.start(
                usesSnapshots: usesSnapshots, now: localTime(device), randomBits: bits())
        } catch  where !isConverging && Self.diskCode(of: error) != nil {
            note("start failed \(Self.diskCode(of: error) ?? 0)", device.number)
            return stop(device)
        }
        mend(device.disk)
        if device.disk.isDown { return stop(device) }
        note("start", device.number)
        if let problem = try device.node?.store.contradiction() {
            throw failure("device \(device.number) after its start: \(problem)")
        }
        try handle(.wake(isUrgent: true), on: device)
    }

    /// Tells a device to drop its tables and to refetch everything.
    func beginRefetching(_ device: DeviceMachine) throws {
        report.newBeginnings += 1
        report.happened(.newBeginning)
        note("anew", device.number)
        maybeBreak(device.disk)
        do {
            try device.beginRefetching(now: localTime(device), randomBits: bits())
        } catch  where !isConverging && Self.diskCode(of: error) != nil {
            note("anew failed \(Self.diskCode(of: error) ?? 0)", device.number)
            if device.disk.isDown { return stop(device) }
        }
        mend(device.disk)
        if device.disk.isDown { return stop(device) }
        try start(device)
    }

    /// Switches a device off, and on again after a while.
    func stop(_ device: DeviceMachine) {
        report.deviceCrashes += 1
        report.happened(.deviceCrash)
        note("crash", device.number)
        listeners.removeAll { $0.device == device.number }
        device.stop(&random)
        queue.put(.restart(device: device.number), at: now + 100 + Int64(random.below(20_000)))
    }

    func localTime(_ device: DeviceMachine) -> Int64 {
        now + device.skew
    }

    // MARK: - Events of a device

    func handle(_ event: DeviceNode.Event, on device: DeviceMachine) throws {
        guard let node = device.node else { return }
        if random.below(1_000) < faults.clockJumps {
            device.skew += Int64(random.below(7_200_000)) - 3_600_000
            report.happened(.clockJump)
            tell(.device(device.number)) { "its clock is \(device.skew / 1_000) s off now" }
        }
        if random.below(1_000) < faults.partitions {
            report.partitions += 1
            report.happened(.partition)
            device.isolatedUntil = now + Int64(random.below(120_000))
            tell(.device(device.number)) {
                "no network for \((device.isolatedUntil - now) / 1_000) s"
            }
        }
        maybeBreak(device.disk)
        let (actions, excess) = device.handle(event, now: localTime(device))
        if let excess { throw failure("device \(device.number): \(excess)") }
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
        if random.below(1_000) < faults.newBeginnings { try beginRefetching(device) }
    }

    private func perform(_ action: DeviceNode.Action, of device: DeviceMachine) throws {
        switch action {
        case .send(let exchange, let body):
            try checkPurge(body, of: device)
            send(exchange, body: Gzip.compress(body), from: device)
        case .cancel(let exchange): try giveUp(exchange, of: device)
        case .openStream(let stream, let cursor):
            queue.put(
                .listen(
                    device: device.number, life: device.life, stream: stream, cursor),
                at: now + delay())
        case .closeStream(let stream):
            listeners.removeAll { $0.device == device.number && $0.stream == stream }
        case .fetchSnapshot(let number):
            queue.put(
                .snapshotAsked(device: device.number, life: device.life, number: number),
                at: now + delay())
        case .fetchPart(let number, let part, let manifest):
            queue.put(
                .partAsked(
                    device: device.number, life: device.life, number: number, part: part.name,
                    manifest.revision),
                at: now + delay())
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
            note("applied \(revision)", device.number)
            try count(applied.receipts, of: device)
        case .notify(.streamed(let applied, let revision)):
            note("streamed \(revision)", device.number)
            report.batches += 1
            try count(applied.receipts, of: device)
        case .notify(.seeded(let installed)):
            report.parts += 1
            note("part \(installed.name)", device.number)
            try count(installed.report.receipts, of: device)
        case .notify(.seedingFailed(let error, _)):
            note("no part: \(error.kind.name)", device.number)
            guard [.offline, .busy, .storage].contains(error.kind) else {
                throw failure("device \(device.number) cannot take a part: \(error.message)")
            }
        case .tidy:
            queue.put(
                .deviceEvent(device: device.number, life: device.life, .tidy), at: now)
        case .notify(.passedOver(let count)): note("passed over \(count)", device.number)
        case .notify(.live(let isLive)): note("live \(isLive)", device.number)
        case .notify(.late(let isLate)): note("late \(isLate)", device.number)
        case .notify(.exchanged(let revision, let isComplete)):
            if isComplete { device.isRefetching = false }
            note("exchanged \(revision)", device.number)
        case .notify(.failed(let error, let retryIn)):
            note("failed \(error.kind.name)", device.number)
            // An answer that a proxy makes may not be valid at all.
            let isExpected =
                [.offline, .busy, .storage].contains(error.kind)
                || error.kind == .violation && hasStrangers
            guard isExpected, retryIn != nil else {
                throw failure("device \(device.number) stopped: \(error.message)")
            }
        }
    }

    private func count(_ receipts: [Receipt], of device: DeviceMachine) throws {
        for receipt in receipts where receipt.outcome == .refused {
            report.refused += 1
            tell(.device(device.number)) {
                "set \(Journal.short(receipt.identifier)) was refused: \(receipt.message ?? "")"
            }
            try checkNeed(of: receipt, on: device)
        }
    }

    func inflated(_ body: [UInt8]) throws -> [UInt8] {
        try Gzip.inflate(
            body, limit: Limits.inflatedBytes, ratio: Limits.inflationRatio,
            ratioFloor: Limits.inflationRatioFloor)
    }
}
