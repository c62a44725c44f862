internal import CompressionKit
internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletRules
internal import MartletServerCore
internal import SQLiteFaults
internal import SQLiteKit
internal import SQLiteRecords

extension Simulator {
    /// Sends the first part of a snapshot to a device that asked for one.
    func sendSnapshot(to device: DeviceMachine, life: Int, number: Int) throws {
        guard device.life == life, device.isUp else { return }
        let showsEverything = server.showsEverything(to: sender(device.number))
        guard showsEverything || random.chance(faults.viewSnapshots) else {
            // The server has none for this person.
            return queue.put(
                .deviceEvent(
                    device: device.number, life: life, .snapshotFailed(number, cut: nil)),
                at: now + delay())
        }
        var snapshot: SimulatedSnapshot?
        if isReachable(from: device) {
            snapshot = try makeSnapshot(
                for: device, showsEverything, mayBeOld: random.chance(faults.oldSnapshots))
        }
        let first = snapshot?.manifest.parts.first?.name ?? ""
        let file = spoilt(snapshot?.files[first])
        queue.put(
            .snapshotCame(
                device: device.number, life: life, number: number, snapshot?.manifest, file: file),
            at: occupy(\.downBusyUntil, of: device, with: file?.count ?? 0) + delay())
    }

    /// Sends another part to a device that asked for it.
    func sendPart(
        _ part: String, at revision: Revision, to device: DeviceMachine, life: Int, number: Int
    ) throws {
        guard device.life == life, device.isUp else { return }
        var file: [UInt8]?
        let showsEverything = server.showsEverything(to: sender(device.number))
        if !showsEverything, isReachable(from: device) {
            let newest =
                random.chance(faults.viewSnapshots)
                ? try makeSnapshot(
                    for: device, false, mayBeOld: random.chance(faults.oldSnapshots)) : nil
            file = newest?.manifest.revision == revision ? newest?.files[part] : nil
            if file == nil {
                return queue.put(
                    .deviceEvent(
                        device: device.number, life: life,
                        .partGone(number, newest: newest?.manifest)), at: now + delay())
            }
        }
        if showsEverything, isReachable(from: device) {
            if random.chance(faults.newSnapshots) {
                _ = try makeSnapshot(for: device, true, mayBeOld: false)
            }
            file = server.part(part, at: revision)
            if file == nil, server.isUp {
                let newest = try makeSnapshot(
                    for: device, true, mayBeOld: random.chance(faults.oldSnapshots))
                report.partsGone += 1
                note("part gone", device.number)
                return queue.put(
                    .deviceEvent(
                        device: device.number, life: life,
                        .partGone(number, newest: newest?.manifest)),
                    at: now + delay())
            }
        }
        file = spoilt(file)
        queue.put(
            .partCame(device: device.number, life: life, number: number, file: file),
            at: occupy(\.downBusyUntil, of: device, with: file?.count ?? 0) + delay())
    }

    private func isReachable(from device: DeviceMachine) -> Bool {
        server.isUp && now >= device.isolatedUntil && !isBehindPortal(device)
    }

    /// - Parameters:
    ///   - device: The device that asks.
    ///   - showsEverything: Whether its person sees everything.
    private func makeSnapshot(
        for device: DeviceMachine, _ showsEverything: Bool, mayBeOld: Bool
    ) throws -> SimulatedSnapshot? {
        guard let client = try device.node?.store.clientID else { return nil }
        let person = sender(device.number)
        var snapshot: SimulatedSnapshot?
        maybeBreak(server.disk)
        do {
            if showsEverything {
                let made = try server.snapshot(mayBeOld: mayBeOld)
                try server.noteEverything(givenTo: client, of: person, now: serverTime)
                snapshot = made
            } else {
                snapshot = try server.snapshot(
                    for: person, client, mayBeOld: mayBeOld, now: serverTime
                ) {
                    try readLog()
                    return try sight(of: person)
                }
            }
        } catch  where error is StorageFault || error is SQLiteError || error is SnapshotError {
            note("no snapshot", 0, at: .server)
        }
        if server.disk.isDown {
            stopServer()
        } else {
            mend(server.disk)
            try readLog()
        }
        if let snapshot, snapshot.manifest.revision < model.revision {
            report.happened(.oldSnapshot)
        }
        if let snapshot, !showsEverything { try checkSight(snapshot, of: person) }
        return snapshot
    }

    /// Checks that a snapshot of a view has no record that the person may not see now.
    private func checkSight(_ snapshot: SimulatedSnapshot, of person: Principal) throws {
        report.viewSnapshots += 1
        guard let schema = server.schema, let program = try rights?.program(schema),
            let viewer = rights?.viewer(person, now), let sight = try sight(of: person)
        else { return }
        for (type, ids) in snapshot.sight ?? [:] {
            // The person may see each record of a type that is shown whole, and so the deleted ones.
            guard schema.index(of: type).map({ program.extent(of: $0, for: viewer) }) != .whole,
                let id = ids.subtracting(sight[type] ?? []).min()
            else { continue }
            throw failure(
                "\(person.identity) gets a snapshot of revision \(snapshot.manifest.revision) with"
                    + " \(type) \(id), which he may not see any more")
        }
        guard snapshot.manifest.revision == model.revision else { return }
        for file in snapshot.files.values {
            try expectNothingHidden(
                in: try inflated(file), sight, "a snapshot for \(person.identity)")
        }
    }

    /// Returns a file as it arrives. Its checksum reveals any change on the way.
    private func spoilt(_ file: [UInt8]?) -> [UInt8]? {
        guard var bytes = file, !bytes.isEmpty, random.chance(faults.spoiltSnapshots) else {
            return file
        }
        report.happened(.spoiltSnapshot)
        switch random.below(3) {
        case 0: return nil
        case 1: return Array(bytes.prefix(random.below(bytes.count)))
        default:
            bytes[random.below(bytes.count)] ^= UInt8(1 + random.below(255))
            return bytes
        }
    }

    /// Delivers a snapshot. The shell around a device checks it before the device gets it.
    func receiveSnapshot(
        _ file: [UInt8]?, of manifest: SnapshotManifest?, number: Int, on device: DeviceMachine
    ) throws {
        guard let path = device.node?.store.snapshotPath else { return }
        if let manifest, arrives(file, at: path, on: device) {
            report.snapshots += 1
            return try handle(.snapshotFetched(number, manifest), on: device)
        }
        let isCut = random.chance(50)
        try handle(
            .snapshotFailed(number, cut: isCut ? SyncError(.offline, "cut") : nil), on: device)
    }

    /// Delivers another part, which is checked in the same way.
    func receivePart(_ file: [UInt8]?, number: Int, on device: DeviceMachine) throws {
        let path = "part.sqlite"
        if arrives(file, at: path, on: device) {
            return try handle(.partFetched(number, path: path), on: device)
        }
        let error = SyncError(.offline, "The part did not come.")
        try handle(.partFailed(number, error, retryAfter: nil), on: device)
    }

    private func arrives(_ file: [UInt8]?, at path: String, on device: DeviceMachine) -> Bool {
        guard let file, let inflated = try? inflated(file), !device.disk.isDown else {
            return false
        }
        device.disk.install(inflated, at: path)
        do {
            try SnapshotReader(path: path, vfs: device.disk.vfsName).verify()
            note("snapshot", device.number)
            return true
        } catch {
            note("spoilt snapshot", device.number)
            return false
        }
    }
}
