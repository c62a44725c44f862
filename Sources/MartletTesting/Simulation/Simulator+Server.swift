internal import CompressionKit
internal import MartletProtocol
internal import MartletServerCore
internal import SQLiteFaults
internal import SQLiteKit

extension Simulator {
    func startServer() throws {
        guard !server.isUp else { return }
        maybeBreak(server.disk)
        do {
            try server.start(randomBits: bits(), now: now)
        } catch  where !isSettling && (error is SQLiteError || error is StorageFault) {
            note("server start failed", 0, at: .server)
            return stopServer()
        }
        mend(server.disk)
        if server.disk.isDown { return stopServer() }
        note("server start", 0, at: .server)
        try readLog()
    }

    func stopServer() {
        report.serverCrashes += 1
        report.happened(.serverCrash)
        note("server crash", 0, at: .server)
        server.stop(&random)
        for listener in listeners { cut(devices[listener.device], stream: listener.stream) }
        waiting.removeAll()
        isServing = false
        queue.put(.restartServer, at: now + 50 + Int64(random.below(5_000)))
    }

    /// Takes all requests that have come as one batch, and sends the answers off.
    func serve() throws {
        isServing = false
        guard server.isUp, !waiting.isEmpty else { return }
        let batch = waiting
        waiting.removeAll()
        maybeBreak(server.disk)
        let bodies = try batch.map { try inflated($0.body) }
        let answers = server.process(bodies, now: now)
        if let excess = server.excess { throw failure("the server: \(excess)") }
        if server.disk.isDown { return stopServer() }
        mend(server.disk)
        try readLog()
        if random.below(1_000) < faults.crashes { return stopServer() }
        defer { push() }
        if random.below(1_000) < faults.compactions {
            report.compactions += 1
            report.happened(.compaction)
            note("compact", 0, at: .server)
            maybeBreak(server.disk)
            server.compact(keeping: Int64(random.below(40)))
            if server.disk.isDown { return stopServer() }
            mend(server.disk)
        }
        for (request, answer) in zip(batch, answers) {
            note("answer \(answer.status)", request.device)
            send(answer.status, body: answer.body, for: request)
        }
    }

    private func send(_ status: Int, body: [UInt8], for request: WaitingRequest) {
        let copies = random.chance(faults.doubledAnswers) ? 2 : 1
        report.doubledMessages += copies - 1
        if copies > 1 { report.happened(.doubledMessage) }
        for _ in 0..<copies {
            if random.chance(faults.lostAnswers) {
                report.lostMessages += 1
                report.happened(.lostAnswer)
                tell(.device(request.device)) { "an answer to it is lost" }
                continue
            }
            let arrival = now + 1 + Int64(random.below(faults.longestDelay))
            let device = devices[request.device]
            if arrival < device.newestAnswer { report.happened(.overtaking) }
            device.newestAnswer = max(device.newestAnswer, arrival)
            queue.put(
                .answer(
                    device: request.device, life: request.life, exchange: request.exchange,
                    status: status, body: body),
                at: arrival)
        }
    }

    /// Another program writes to the server's file. The server takes it in at once, or with the
    /// next batch, or after the next crash.
    func writeOutside() throws {
        guard !isSettling else { return }
        queue.put(.writeOutside, at: now + 1_000 + Int64(random.below(60_000)))
        guard server.isUp else { return }
        saves += 1
        let work = Workload(token: "o\(saves)")
        var person = SeededRandom(seed: random.next())
        maybeBreak(server.disk)
        do {
            try server.writeOutside { try work.runOutside($0, &person) }
            report.outsideWrites += 1
            note("outside", 0, at: .server)
        } catch let error as SQLiteError {
            // A constraint, or the disk; what it did is in the file, or is not, as a whole.
            note("outside failed \(error.code)", 0, at: .server)
        }
        if server.disk.isDown { return stopServer() }
        if random.chance(50) { server.takeOutside(now: now) }
        if server.disk.isDown { return stopServer() }
        mend(server.disk)
        try readLog()
        push()
    }

    /// Folds the new entries of the server's log into the model, and checks each.
    func readLog() throws {
        for entry in try server.entries(after: model.revision) {
            report.accepted += 1
            report.add(entry.identifier, Int(entry.revision))
            tell(.server) {
                "takes set \(Journal.short(entry.identifier)) as revision \(entry.revision):"
                    + " \(Journal.text(entry.set))"
            }
            if let problem = model.fold(entry.set, revision: entry.revision) {
                throw failure(problem)
            }
            let problem = ledger.book(
                entry.set, identifier: entry.identifier, revision: entry.revision,
                author: entry.author)
            if let problem { throw failure(problem) }
            logged.append(entry.set)
        }
    }
}
