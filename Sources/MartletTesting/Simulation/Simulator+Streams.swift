internal import CompressionKit
internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

extension Simulator {
    /// An open stream, as the server sees it.
    struct Listener {
        let device: Int
        let life: Int
        let stream: Int
        /// The request that it makes next.
        var request: DeltaRequest
    }

    /// Opens a stream for a device.
    func listen(_ device: DeviceMachine, life: Int, stream: Int, _ cursor: DeltaCursor) throws {
        guard device.life == life, device.isUp else { return }
        guard server.isUp, now >= device.isolatedUntil, !random.chance(faults.lostRequests) else {
            return cut(device, stream: stream)
        }
        if isBehindPortal(device) {
            let page = strangeAnswer(true: [])
            note("stream of a stranger \(page.status)", device.number)
            return queue.put(
                .deviceEvent(
                    device: device.number, life: life,
                    .streamEnded(
                        stream, status: page.status, message: "a page",
                        problem: .unrecognized(status: page.status), retryAfter: page.retryAfter)),
                at: now + delay())
        }
        var request = request(cursor, of: sender(device.number))
        let first = server.deltas(request)
        if case .failure(let problem)? = first {
            note("stream \(problem.status)", device.number)
            return queue.put(
                .deviceEvent(
                    device: device.number, life: life,
                    .streamEnded(
                        stream, status: problem.status, message: problem.detail, retryAfter: nil)),
                at: now + delay())
        }
        report.streams += 1
        note("stream", device.number)
        if rights == nil {
            request.lineage = nil
        } else if case .success(let batch)? = first {
            request.advance(past: batch)
        }
        let listener = Listener(
            device: device.number, life: life, stream: stream, request: request)
        listeners.append(listener)
        device.lastArrival = max(
            device.lastArrival, now + delay())
        queue.put(
            .deviceEvent(device: device.number, life: life, .streamOpened(stream)),
            at: device.lastArrival)
        if rights != nil, case .success(let batch)? = first, !batch.isEmpty {
            try expectNothingHidden(in: batch.json, listener)
            send(batch.json, listener, to: device)
        }
        try push()
    }

    /// Checks that a batch has no text of a record that the listener's person may not see.
    private func expectNothingHidden(in batch: [UInt8], _ listener: Listener) throws {
        guard let sight = try sight(of: listener.request.principal) else {
            rights?.hadEverything.insert(listener.device)
            return
        }
        try expectNothingHidden(in: batch, sight, "a batch for device \(listener.device)")
    }

    private func request(_ cursor: DeltaCursor, of person: Principal) -> DeltaRequest {
        var request = DeltaRequest(principal: person, since: cursor.since, byteLimit: 5_000)
        request.clientID = cursor.clientID
        request.dataSet = cursor.dataSet
        request.lineage = cursor.lineage
        request.takesEntriesOnly = true
        request.mostEntryBytes = 2_500
        return request
    }

    /// Sends new entries over all streams.
    func push() throws {
        guard server.isUp else { return }
        for index in listeners.indices.reversed() where index < listeners.count {
            try push(index)
        }
    }

    private func push(_ index: Int) throws {
        let device = devices[listeners[index].device]
        while case .success(let batch)? = server.deltas(listeners[index].request), !batch.isEmpty {
            let listener = listeners[index]
            if rights != nil { try expectNothingHidden(in: batch.json, listener) }
            listeners[index].request.advance(past: batch)
            if random.below(1_000) < faults.streamCuts {
                listeners.remove(at: index)
                report.happened(.streamCut)
                return cut(device, stream: listener.stream)
            }
            send(batch.json, listener, to: device)
        }
    }

    private func send(_ batch: [UInt8], _ listener: Listener, to device: DeviceMachine) {
        let bytes = Gzip.compress(batch)
        let swift = faults.shortestDelay + random.below(faults.longestDelay / 4 + 1)
        device.lastArrival = max(
            device.lastArrival,
            occupy(\.downBusyUntil, of: device, with: bytes.count) + 1 + Int64(swift))
        var arrivals = [device.lastArrival]
        if random.below(1_000) < faults.strayBatches {
            note("stray", device.number)
            report.happened(.strayBatch)
            let late = now + Int64(random.below(faults.longestDelay * 2 + 1))
            switch random.below(3) {
            case 0: arrivals = []
            case 1: arrivals = [late]
            default: arrivals.append(late)
            }
        }
        for arrival in arrivals {
            queue.put(
                .pushed(
                    device: listener.device, life: listener.life, stream: listener.stream,
                    batch: bytes),
                at: arrival)
        }
    }

    /// Cuts a stream. Its device notices this after a while.
    func cut(_ device: DeviceMachine, stream: Int) {
        note("cut", device.number)
        listeners.removeAll { $0.device == device.number && $0.stream == stream }
        queue.put(
            .deviceEvent(
                device: device.number, life: device.life,
                .streamEnded(stream, status: nil, message: "cut", retryAfter: nil)),
            at: now + 1 + Int64(random.below(5_000)))
    }
}
