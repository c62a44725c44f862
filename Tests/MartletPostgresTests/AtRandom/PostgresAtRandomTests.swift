import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

/// Tables that chance declares on PostgreSQL, and all that others do to them while devices' sets are taken.
private final class ExternalWorldAtRandom {
    private let schema: RandomTables
    private let capture: ExternalCapture
    private let seed: UInt64
    private var chance: Chance
    private var devices = [RandomDevice("d1"), RandomDevice("d2"), RandomDevice("calm")]
    private var history: [String] = []
    private var faults: [String] = []
    private var server: SmallServer?
    private var programs: [PostgresConnection] = []
    private var triggers: [(name: String, table: UInt32)] = []
    private var number = 0
    /// Whether there is a standby that is waited for, and how.
    private let standby: StandbyWaits
    private var waiters: [CommitWaiter] = []
    /// Tables that were altered: their rows got values that were no change of theirs.
    private var altered: Set<UInt32> = []

    init(_ capture: ExternalCapture, seed: UInt64, standby: StandbyWaits = .none) {
        self.capture = capture
        self.standby = standby
        self.seed = seed
        chance = Chance(seed: seed)
        schema = RandomTables(&chance)
        history.append("\(capture)\n\(schema.script)")
    }

    /// Lives through so many steps.
    /// - Returns: What went wrong, and the story; nothing if all is well.
    func run(_ servers: DatabaseServers, steps: Int) -> [String] {
        do {
            let server = try SmallServer(
                servers, capture, script: schema.script, tables: schema.names + ["calm"],
                truncation: chance.percent(50) ? .refuse : .delete)
            self.server = server
            server.beforeLook = { [unowned self] in endAll() }
            server.isHeldBack = { [unowned self] in
                !waiters.isEmpty || programs.contains(where: \.isInTransaction)
            }
            if standby == .cancelled {
                try server.waitAlways()
                server.isUnreplicated = true
            }
            if schema.refused != nil { faults.append("a column of an unknown type was adopted") }
            try live(server, steps)
        } catch let refusal as AdoptionError {
            if schema.refused.map({ !refusal.description.contains("“\($0)”") }) ?? true {
                faults.append("refused: \(refusal)")
            }
        } catch {
            faults.append("\(error)")
        }
        programs.forEach { $0.close() }
        waiters.forEach { $0.end() }
        faults += server?.faults ?? []
        faults += devices.flatMap(\.faults)
        server?.close()
        return faults.isEmpty
            ? [] : faults.map { "!! \($0)" } + history.map { String($0.prefix(1_000)) }
    }

    private func live(_ server: SmallServer, _ steps: Int) throws {
        for _ in 0..<3 {
            let program = try server.program()
            try program.execute("SET lock_timeout = 5; SET statement_timeout = 5000")
            programs.append(program)
        }
        server.open()
        for _ in 0..<steps where faults.isEmpty && server.faults.isEmpty {
            switch chance.number(0..<100) {
            case 0..<50: try write(chance.one(of: programs))
            case 50..<75: try exchange(server)
            case 75..<83: try change()
            case 83..<90: try changeTriggers()
            default: try judge(server)
            }
        }
        try end(server)
    }

    // MARK: - Others

    /// Runs what may fail.
    private func run(_ sql: String, on program: PostgresConnection) {
        do {
            try program.isInTransaction
                ? program.savepoint { try program.execute(sql) } : program.execute(sql)
            history.append(sql)
        } catch {
            history.append("\(sql)\n-- failed: \("\(error)".prefix(200))")
        }
    }

    /// The tables that others may touch.
    private func tables() throws -> [LiveTable] {
        guard let connection = server?.connection else { return [] }
        return try LiveTable.all(connection).filter { $0.type != "calm" }
    }

    private func write(_ program: PostgresConnection) throws {
        let index = programs.firstIndex { $0 === program } ?? 0
        if standby == .held, chance.percent(40) { return try wait() }
        switch chance.number(0..<10) {
        case 0 where !program.isInTransaction:
            run("BEGIN", on: program)
        case 1, 2:
            guard program.isInTransaction else { return }
            run(chance.percent(70) ? "COMMIT" : "ROLLBACK", on: program)
        default:
            let isLocking = program.isInTransaction && chance.percent(30)
            let random = RandomSQL(try tables())
            let sql = isLocking ? random.lock(&chance) : random.statement(&chance)
            history.append(
                "-- program \(index)\(program.isInTransaction ? ", in a transaction" : "")")
            run(program.isInTransaction ? sql : "BEGIN; \(sql); COMMIT", on: program)
            // Devices save while the lock is there.
            if isLocking, chance.percent(60), let server { try exchange(server, everywhere: true) }
        }
    }

    /// Gives rows a number that no device can be sent, and something else that devices should have; nil if no
    /// table has such columns.
    private func spoiling() throws -> String? {
        let some = try tables().filter { table in
            table.key != nil && table.writable.contains(where: \.isNumber)
                && table.writable.contains { $0.type == "text" }
        }
        guard let table = some.randomElement(using: &chance), let key = table.key,
            let number = table.writable.first(where: \.isNumber),
            let text = table.writable.filter({ $0.type == "text" }).randomElement(using: &chance)
        else { return nil }
        let id = key.quoted
        return """
            UPDATE \(table.sql) SET \(number.quoted) = 'NaN', \(text.quoted) = 'unseen \(history.count)' \
            WHERE \(id) IN (SELECT \(id) FROM \(table.sql) ORDER BY 1 OFFSET \(chance.number(0..<3)) LIMIT 2)
            """
    }

    /// A program writes, and its commit waits for a standby that is an hour behind.
    private func wait() throws {
        guard let server, waiters.count < 3 else { return }
        if !waiters.isEmpty, chance.percent(50) {
            waiters.removeFirst().end()
            history.append("-- one of the commits goes on")
            return
        }
        let sql = RandomSQL(try tables()).statement(&chance)
        waiters.append(try CommitWaiter(server.root, "BEGIN; \(sql); COMMIT"))
        history.append("-- a commit that waits: \(sql)")
    }

    private func endAll() {
        waiters.forEach { $0.end() }
        waiters = []
        for program in programs where program.isInTransaction {
            let isGood = !program.hasFailedTransaction && chance.percent(70)
            history.append(isGood ? "COMMIT" : "ROLLBACK")
            do {
                try isGood ? program.commit() : program.rollback()
            } catch {
                history.append("-- failed: \(error)")
                try? program.rollback()
            }
        }
    }

    private func ddl() throws -> RandomDDL {
        number += 1
        let tables = try tables()
        return RandomDDL(tables: tables, keys: keys(tables), number: number)
    }

    private func keys(_ tables: [LiveTable]) -> [UInt32: String] {
        Dictionary(
            tables.map { ($0.oid, $0.key?.type ?? "") }, uniquingKeysWith: { first, _ in first })
    }

    private func change() throws {
        endAll()
        let sql = try ddl().change(&chance)
        for table in try tables() where sql.contains(table.sql) || sql.contains("\(table.oid)") {
            altered.insert(table.oid)
        }
        run(sql, on: programs[0])
        if chance.percent(60) { server?.look() }
    }

    private func changeTriggers() throws {
        endAll()
        if let last = triggers.last, chance.percent(40) {
            run("DROP FUNCTION \(last.name)() CASCADE", on: programs[0])
            triggers.removeLast()
            return
        }
        let sql = try ddl().trigger(&chance)
        run(sql, on: programs[0])
        triggers.append(("f\(number)", 0))
    }

    // MARK: - Devices

    /// - Parameter everywhere: Whether devices write to each table, and not to one only.
    private func exchange(_ server: SmallServer, everywhere: Bool = false) throws {
        let tables = try LiveTable.all(server.connection)
        let keys = keys(tables)
        if chance.percent(30), !programs.contains(where: \.isInTransaction),
            let sql = try spoiling()
        {
            run(sql, on: programs[0])
        }
        try server.converge()
        let unseen = try unseen(server)
        for index in devices.indices {
            let isCalm = devices[index].client == "calm"
            let some = tables.filter { ($0.type == "calm") == isCalm }
            guard let one = some.randomElement(using: &chance), isCalm || chance.percent(70) else {
                continue
            }
            for table in everywhere ? some : [one] {
                devices[index].make(table, keys: keys, server.folded, preferring: unseen, &chance)
            }
        }
        try send(server)
    }

    private func send(_ server: SmallServer) throws {
        let indices = devices.indices.filter { !devices[$0].pending.isEmpty }
        let requests = indices.compactMap { devices[$0].request(at: server.folded.revision) }
        let unseen = try unseen(server)
        for (index, result) in zip(indices, try server.process(requests)) {
            let before = devices[index].pending
            switch result {
            case .success(let answer): devices[index].take(answer)
            case .failure(let problem):
                faults.append(
                    "\(devices[index].client): \(problem.status) \(server.lastFault ?? "no fault")")
            }
            for set in before {
                let fate =
                    devices[index].decided[set.identifier].map { $0 ?? "accepted" } ?? "put off"
                history.append("-- \(set.text.prefix(300)): \(fate)")
                if fate == "accepted", let name = set.named.first(where: unseen.contains) {
                    faults.append("no device has seen \(name), and a set overrode it: \(set.text)")
                }
                // While a commit waits for the standby, nothing behind it in the write-ahead log is read:
                // records that were written since are not edited (decision 0175).
                let isBehind = fate == "put off" && !set.named.isEmpty && !waiters.isEmpty
                if devices[index].client == "calm", fate != "accepted", !isBehind {
                    faults.append("a table that nobody touches has to wait: \(fate)")
                }
            }
        }
    }

    /// Records that devices have, and whose rows no device can be sent any more, with something else changed.
    private func unseen(_ server: SmallServer) throws -> Set<String> {
        // Others may have locked tables.
        guard !programs.contains(where: \.isInTransaction) else { return [] }
        let program = try server.program()
        defer { program.close() }
        let judge = TablesJudge(connection: program, folded: server.folded, leftOut: [])
        return Set(
            try LiveTable.all(program).filter { !altered.contains($0.oid) }
                .flatMap { table in try judge.unseen(of: table).map { "\(table.type)/\($0)" } })
    }

    // MARK: - Judgement

    private func judge(_ server: SmallServer) throws {
        endAll()
        server.look()
        try server.converge()
        let differences = try server.differences()
        history.append("-- judged")
        if let unreadyReason = server.unreadyReason {
            faults.append("not taken up: \(unreadyReason)")
        }
        guard !differences.isEmpty else { return }
        let diagnosis = try server.diagnosis()
        for difference in differences where !server.isTold(difference, diagnosis) {
            faults.append("\(difference)")
        }
    }

    /// Once all is well, every set is decided, and each that was accepted is in the log once.
    private func end(_ server: SmallServer) throws {
        guard faults.isEmpty, server.faults.isEmpty else { return }
        endAll()
        for trigger in triggers {
            run("DROP FUNCTION IF EXISTS \(trigger.name)() CASCADE", on: programs[0])
        }
        try judge(server)
        for _ in 0..<5 {
            server.pass(milliseconds: 700_000)
            try server.converge()
            try send(server)
        }
        for device in devices {
            for set in device.pending { faults.append("never decided: \(set.text)") }
            for (identifier, fate) in device.decided {
                let rows = try server.connection.query(
                    "SELECT count(*) FROM _martlet.log WHERE identifier = $1", [.text(identifier)])
                let wanted: Int64 = fate == nil ? 1 : 0
                if try rows.integer(0, 0) != wanted {
                    faults.append(
                        "\(identifier), \(fate ?? "accepted"): not \(wanted) times in the log")
                }
            }
        }
        try judge(server)
    }
}

@Suite("Other programs at random on PostgreSQL, with a standby that commits wait for")
struct StandbyAtRandomTests {
    private static let worlds =
        ProcessInfo.processInfo.environment["MARTLET_STANDBY_WORLDS"].flatMap(UInt64.init) ?? 1
    private static let first =
        ProcessInfo.processInfo.environment["MARTLET_STANDBY_SEED"].flatMap(UInt64.init) ?? 0

    @Test(
        "devices have what the tables show, and the operator hears of commits that no standby has")
    func worldsOfStandby() async throws {
        let servers = try await DatabaseServers.start([
            "--standby", "--set", "wal_level=logical", "--set", "max_replication_slots=20",
            "--set", "max_wal_senders=20",
        ])
        try await TestDatabase.blocking { try CommitWaiter.awaitStandby(servers) }
        let canceller = CommitCanceller(try PostgresAddress(servers.postgresURL))
        for seed in Self.first..<Self.first + Self.worlds {
            for capture in ExternalCapture.allCases {
                for standby in [StandbyWaits.held, .cancelled] {
                    canceller.isOn = standby == .cancelled
                    try await TestDatabase.blocking {
                        let faults = ExternalWorldAtRandom(capture, seed: seed, standby: standby)
                            .run(servers, steps: 20)
                        #expect(
                            faults.isEmpty,
                            "\(capture), \(standby), seed \(seed)\n\(faults.joined(separator: "\n"))"
                        )
                    }
                }
            }
        }
        canceller.end()
        _ = servers
    }
}

@Suite("Other programs at random on PostgreSQL, with tables at random")
struct PostgresAtRandomTests {
    private static let worlds =
        ProcessInfo.processInfo.environment["MARTLET_POSTGRES_WORLDS"].flatMap(UInt64.init) ?? 8
    private static let first =
        ProcessInfo.processInfo.environment["MARTLET_POSTGRES_SEED"].flatMap(UInt64.init) ?? 0

    @Test(
        "devices have what the tables have, every set is decided, and nobody waits for another's fault",
        arguments: ExternalCapture.allCases)
    func worldsOfPostgres(_ capture: ExternalCapture) async throws {
        let servers = try await capture == .logical ? DatabaseServers.logical() : .shared()
        for seed in Self.first..<Self.first + Self.worlds {
            try await TestDatabase.blocking {
                let faults = ExternalWorldAtRandom(capture, seed: seed).run(servers, steps: 40)
                #expect(
                    faults.isEmpty, "\(capture), seed \(seed)\n\(faults.joined(separator: "\n"))")
            }
        }
    }
}
