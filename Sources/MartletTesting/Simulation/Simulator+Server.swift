internal import CompressionKit
internal import MartletModel
internal import MartletServerCore
internal import SQLiteFaults
internal import SQLiteKit

extension Simulator {
    func startServer() throws {
        guard !server.isUp else { return }
        maybeBreak(server.disk)
        do {
            server.rules = rights?.text
            try server.start(randomBits: bits(), now: serverTime)
        } catch  where !isConverging && (error is SQLiteError || error is StorageFault) {
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
        dropConnections()
        queue.put(.restartServer, at: now + 50 + Int64(random.below(5_000)))
    }

    /// Ends all streams and requests, because the server goes down.
    func dropConnections() {
        for listener in listeners { cut(devices[listener.device], stream: listener.stream) }
        waiting.removeAll()
        isServing = false
    }

    /// Processes all waiting requests as one batch, and sends the answers.
    func serve() throws {
        isServing = false
        guard server.isUp, !waiting.isEmpty else { return }
        let batch = waiting
        waiting.removeAll()
        maybeBreak(server.disk)
        let bodies = try batch.map { try inflated($0.body) }
        let before = model
        served = batch
        let answers = server.process(bodies, of: batch.map(\.sender), now: serverTime)
        if let excess = server.excess { throw failure("the server: \(excess)") }
        if server.disk.isDown {
            try forgetVerdicts(bodies)
            return stopServer()
        }
        mend(server.disk)
        let entries = try readLog()
        if rights != nil {
            let exchanges = zip(batch, zip(bodies, answers)).map {
                Exchange(request: $0, body: $1.0, answer: $1.1)
            }
            try checkRights(exchanges, entries, since: before)
        }
        if random.below(1_000) < faults.crashes { return stopServer() }
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
            send(answer, for: request)
        }
        try push()
    }

    /// Writes to the server's file as another program. The server takes the write in at once, with
    /// the next batch, or after the next crash.
    func writeExternal() throws {
        // Its statements may change records that a person works on.
        guard !isConverging, app.random == nil || mix.people == .together else { return }
        queue.put(.writeExternal, at: now + 1_000 + Int64(random.below(60_000)))
        guard server.isUp else { return }
        saves += 1
        let token = "o\(saves)"
        var person = SeededRandom(seed: random.next())
        try writeExternal { program in
            guard let schema = app.random else {
                return try workload(token).runExternal(
                    program, mayMeet: mix.people == .together, &person)
            }
            var statements = RandomStatements(
                schema, seed: person.next(), mark: token, on: .server)
            for _ in 0..<(1 + person.below(3)) {
                try program.execute(statements.statement())
            }
        }
    }

    /// Writes to the server's file as another program, in one transaction.
    /// - Returns: The error; nil if it did not fail.
    @discardableResult
    func writeExternal(_ body: (Connection) throws -> Void) throws -> SQLiteError? {
        var failure: SQLiteError?
        maybeBreak(server.disk)
        do {
            try server.writeExternal(body)
            report.externalWrites += 1
            note("outside", 0, at: .server)
        } catch let error as SQLiteError {
            // A constraint or the disk has failed. The transaction is in the file as a whole, or
            // not at all.
            note("outside failed \(error.code)", 0, at: .server)
            failure = error
        }
        if !server.disk.isDown, random.chance(50) { server.takeExternalWrites(now: serverTime) }
        if server.disk.isDown {
            stopServer()
            return failure
        }
        mend(server.disk)
        try readLog()
        try push()
        return failure
    }

    /// Folds the new entries of the server's log into the model, and checks each.
    /// - Returns: The new entries.
    @discardableResult
    func readLog() throws -> [ServerMachine.Entry] {
        let entries = try server.entries(after: model.revision)
        for entry in entries {
            report.accepted += 1
            report.add(entry.identifier, Int(entry.revision))
            tell(.server) {
                "takes set \(Journal.short(entry.identifier)) as revision \(entry.revision):"
                    + " \(Journal.text(entry.set))"
            }
            let before = rights == nil ? Model() : model
            if let problem = model.fold(entry.set, revision: entry.revision) {
                throw failure(problem)
            }
            rights?.note(entry.set, in: model)
            let author = ledger.saves[entry.identifier]?.device
            let problem = try ledger.book(
                entry.set, identifier: entry.identifier, revision: entry.revision,
                author: entry.author
            ) { [self] in try isHidden($0, from: author, in: before) }
            if let problem { throw failure(problem) }
            logged.append(entry.set)
            owners.append(author)
        }
        return entries
    }
}
