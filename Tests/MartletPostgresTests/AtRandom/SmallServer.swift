import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import SQLiteKit
import Synchronization
import TestDatabases

@testable import MartletPostgres
@testable import MartletServerCore

/// A database of a test's own whose owner is no superuser, a server on it, as far as a server opens a data
/// set, looks whether its tables have changed, and decides on sets, and other programs. Confined to the
/// thread that made it.
final class SmallServer {
    /// What a server's log says, or `/readyz`.
    private final class Sentences: Sendable {
        let all = Mutex<[String]>([])
        let rows = Mutex<Set<[String]>>([])
        let unreplicated = Mutex(0)
    }

    var owner: PostgresAddress
    var root: PostgresAddress
    var capture: ExternalCapture
    /// How patient the server's own sessions are.
    private let options: PostgresOptions
    /// The tables' owner.
    var connection: PostgresConnection
    private(set) var store: TestStore?
    var folded = FoldedLog()
    /// Why the tables could not be taken up at the last try; nil if they are as the server has them.
    private(set) var unreadyReason: String?
    /// What a server never does, whatever the tables are.
    var faults: [String] = []
    /// Why the last batch was not carried out.
    private(set) var lastFault: String?

    /// Returns the last fault, and forgets it.
    func takeFault() -> String? { lastFault.take() }

    /// Called before the tables are taken up, which waits for those who hold them.
    var beforeLook: () -> Void = {}
    /// Whether other programs hold locks, or wait in their commits, so that not all can be taken.
    var isHeldBack: () -> Bool = { false }
    /// Whether every commit waits for a standby until somebody cancels the wait.
    var isUnreplicated = false
    private let said = Sentences()
    var pump: LogicalStoreTests.Pump?
    private var state: Int64 = 0

    static let role = "martlet_owner"

    /// - Parameters:
    ///   - servers: Their address is a superuser's.
    ///   - script: Makes the tables, with their rows.
    ///   - tables: Those that are adopted; there is no data set yet if there are none.
    ///   - options: How patient the server's own sessions are.
    init(
        _ servers: DatabaseServers, _ capture: ExternalCapture, script: String, tables: [String],
        truncation: Truncation = .refuse, options: PostgresOptions = PostgresOptions()
    ) throws {
        let shared = try PostgresAddress(servers.postgresURL)
        let name = "random_" + UUID().uuidString.replacing("-", with: "").lowercased()
        let admin = try PostgresConnection(
            shared, PostgresOptions(statement: nil, answer: nil))
        try admin.execute(
            """
            DO $$ BEGIN CREATE ROLE \(Self.role) LOGIN REPLICATION PASSWORD 'owner';
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$
            """)
        try admin.execute("CREATE DATABASE \(name) OWNER \(Self.role)")
        admin.close()
        self.capture = capture
        self.options = options
        root = shared.setting("dbname", name)
        owner = root.setting("user", Self.role).setting("password", "owner")
        connection = try PostgresConnection(owner, PostgresOptions(statement: nil, lock: nil))
        try connection.execute(script)
        guard !tables.isEmpty else { return }
        var request = PostgresAdoption.Request(name: "team", tables: tables)
        request.truncation = truncation
        _ = try PostgresAdoption(on: connection, now: 1).adopt(request)
        if capture == .logical {
            _ = try CaptureSwitch(on: connection).change(to: .logical)
            pump = .init(owner)
        }
    }

    /// Another program, of a superuser or the tables' owner. It has time on a machine that is busy.
    func program(isSuperuser: Bool = true) throws -> PostgresConnection {
        try PostgresConnection(
            isSuperuser ? root : owner,
            PostgresOptions(statement: .seconds(300), answer: .seconds(310)))
    }

    func close() {
        stop()
        stopReading()
        if let state = try? LogicalState.read(connection) {
            try? LogicalSlot(on: connection).drop(state.slot)
        }
        connection.close()
    }

    /// Stops who reads the write-ahead log.
    func stopReading() {
        pump?.stop()
        pump = nil
    }

    /// Stops the server; the database goes on.
    func stop() {
        store?.store.close()
        store?.other.close()
        store = nil
    }

    var sentences: [String] { said.all.withLock(\.self) }
    var leftOut: Set<[String]> { said.rows.withLock(\.self) }

    // MARK: - As a server does

    /// Opens the data set, beside what is open.
    func open() {
        do {
            let opening = try PostgresConnection(owner)
            defer { opening.close() }
            try MartletTables.upgrade(on: opening)
            state = try TableState.read(connection)
            let tables = try PostgresSchema.refresh(opening, now: 1)
            said.all.withLock { $0 += tables.notes + tables.rowSecurityNotes }
            let device = try Connection(path: ":memory:")
            try device.execute(tables.deviceScript)
            let new = try TestStore(
                owner, options: options,
                unsendable: UnsendableRows { [said] row, _ in
                    said.all.withLock { $0.append("\(row.type) \(row.id): \(row.reason)") }
                    _ = said.rows.withLock { $0.insert([row.type, row.id.description]) }
                }, unreplicated: { [said] in said.unreplicated.withLock { $0 += 1 } })
            new.now = max(new.now, store?.now ?? 0)
            stop()
            store = new
            unreadyReason = nil
        } catch {
            unreadyReason = "\(error)"
            said.all.withLock { $0.append("\(error)") }
            if !(error is AdoptionError) { faults.append("opening: \(error)") }
        }
    }

    /// Takes the tables up if they are others than before.
    func look() {
        guard let now = try? TableState.read(connection), now != state || unreadyReason != nil
        else {
            return
        }
        beforeLook()
        open()
    }

    /// Lets time go by.
    func pass(milliseconds: Int64) { store?.now += milliseconds }

    /// Carries out a batch; if that is put off because the tables have changed, once more behind a look.
    func process(_ requests: [String]) throws -> [Result<SyncAnswer, Problem>] {
        let (head, told) = (store?.node.head.revision, said.unreplicated.withLock(\.self))
        defer {
            if isUnreplicated, let now = store?.node.head.revision, now != head,
                said.unreplicated.withLock(\.self) == told
            {
                faults.append("a commit that no standby has is not told")
            }
        }
        var results = try store?.process(requests) ?? []
        if results.contains(where: { if case .failure = $0 { true } else { false } }) {
            lastFault = store?.node.takeFault()?.description
            look()
            results = try store?.process(requests) ?? []
        }
        lastFault = store?.node.takeFault()?.description ?? lastFault
        return results
    }

    /// Has everything taken into the log that was committed, and follows it.
    func converge() throws {
        // The write-ahead log is not read while the tables cannot be taken up.
        if capture == .logical, unreadyReason == nil {
            let wait = LogicalWait(owner)
            defer { wait.close() }
            // While the reader compares the tables, the wait ends at once.
            let end = ContinuousClock.now + .seconds(60)
            while try !wait.wait(rounds: isHeldBack() ? 20 : 1_000) {
                guard !isHeldBack(), ContinuousClock.now < end else { break }
                _ = try connection.query("SELECT pg_catalog.pg_sleep(0.01)")
            }
        }
        for _ in 0..<(isHeldBack() ? 2 : 500) {
            if let store {
                let pull =
                    #"{"clientId":"reader","maxRevision":\#(store.node.head.revision),"changeSets":[]}"#
                if case .failure(let problem)? = try process([pull]).first {
                    faults.append("nothing is taken: \(problem.status) \(lastFault ?? "no fault")")
                    break
                }
            }
            let isPending = try connection.query("SELECT \(ExternalDrain.isPending)").boolean(0, 0)
            if !isPending || store == nil { break }
        }
        try folded.follow(connection)
        faults += folded.takeFaults()
    }

    // MARK: - Judgement

    /// Where devices have something else than the tables.
    func differences() throws -> [TablesJudge.Difference] {
        let judge = try program()
        defer { judge.close() }
        return try TablesJudge(connection: judge, folded: folded, leftOut: leftOut).differences()
    }

    /// What `martlet doctor` says.
    func diagnosis() throws -> [String] {
        try PostgresDoctor(on: connection, now: 0).findings()
            .filter { !["index", "sequences", "clock", "settings"].contains($0.check) }.map(\.what)
    }

    /// Whether an operator is told of a difference, in a sentence that names the table.
    func isTold(_ difference: TablesJudge.Difference, _ diagnosis: [String]) -> Bool {
        (diagnosis + sentences + [unreadyReason].compactMap(\.self)).contains { sentence in
            [difference.type, difference.table ?? difference.type].contains {
                sentence.contains("“\($0)”")
            }
        }
    }
}
