import MartletStore
import Synchronization
import Testing
import Waiting

/// The pool as an app uses it, by many tasks at once.
@Suite("Many at once", .timeLimit(.minutes(5)))
struct ManyAtOnceTests {
    private static let accounts = 20
    private static let each = 100

    struct Account: Codable, ReadableRecord {
        var id: Int
        var owner: Int
        var amount: Int
    }

    /// What observers have seen: how many sums, and the most transfers.
    final class Observed: Sendable {
        let state = Mutex((sums: 0, last: 0))
    }

    struct Accounts: Table {
        typealias Element = Account
        let tableName = "accounts"
        let id = Column<Int>("id")
        let owner = Column<Int>("owner")
    }

    private static let script = """
        CREATE TABLE accounts(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, amount INTEGER NOT NULL);
        CREATE TABLE transfers(id INTEGER PRIMARY KEY, amount INTEGER NOT NULL);

        """

    private func pool(_ folder: StoreFolder) async throws -> DatabasePool {
        let pool = try await folder.pool(script: Self.script) {
            $0.readers = 4
            $0.isDurable = false
        }
        try await pool.write { context in
            let accounts = (1...Self.accounts).map { Account(id: $0, owner: $0 % 4, amount: 100) }
            try Accounts().insert(contentsOf: accounts, in: context)
        }
        return pool
    }

    /// Moves an amount between two accounts, and notes it; every fifth time thinks better of it.
    private static func transfer(_ number: Int, _ pool: DatabasePool) async throws -> Bool {
        struct Regret: Error {}
        let from = number % accounts + 1
        let to = (number * 7 + 3) % accounts + 1
        guard from != to else { return false }
        do {
            try await pool.write { context in
                let table = Accounts()
                guard var giver = try table.find(from, in: context),
                    var taker = try table.find(to, in: context)
                else { throw Regret() }
                giver.amount -= number % 9
                try table.update(giver, in: context)
                if number.isMultiple(of: 5) { throw Regret() }
                taker.amount += number % 9
                try table.update(taker, in: context)
                _ = try context.rows(
                    "INSERT INTO transfers(amount) VALUES (?)", [.integer(Int64(number % 9))])
            }
            return true
        } catch is Regret {
            return false
        }
    }

    @Test("8 tasks write and 8 read while others observe: no sum is ever wrong, none is missed")
    func sums() async throws {
        let folder = try StoreFolder()
        let pool = try await pool(folder)
        let total = Self.accounts * 100
        let observed = Observed()
        let observers = (0..<2).map { _ in
            Task {
                let counts = pool.observe { context in
                    (
                        try Accounts().all(in: context).map(\.amount).reduce(0, +),
                        try PlainTable("transfers").count(in: context)
                    )
                }
                for try await (sum, transfers) in counts {
                    #expect(sum == total)
                    observed.state.withLock { $0 = ($0.sums + 1, max($0.last, transfers)) }
                }
            }
        }
        let done = try await withThrowingTaskGroup(of: Int.self) { group in
            for writer in 0..<8 {
                group.addTask {
                    var done = 0
                    for number in 0..<Self.each
                    where try await Self.transfer(writer * Self.each + number, pool) {
                        done += 1
                    }
                    return done
                }
            }
            for reader in 0..<8 {
                group.addTask {
                    for _ in 0..<Self.each {
                        let sums = try await pool.read { context in
                            [
                                try Accounts().all(in: context).map(\.amount).reduce(0, +),
                                Int(
                                    try context.rows("SELECT sum(amount) AS s FROM accounts")[0]
                                        .value("s", as: Int64.self)),
                            ]
                        }
                        #expect(sums == [total, total])
                        let one = try await pool.read {
                            try Accounts().all(where: Accounts().owner == reader % 4, in: $0).count
                        }
                        #expect(one == Self.accounts / 4)
                    }
                    return 0
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(done > 8 * Self.each / 2)
        #expect(try await pool.integer("SELECT count(*) FROM transfers") == done)
        #expect(try await pool.integrity() == "ok")
        // The last state reaches observers, however many saves it stands for.
        try await waitUntil("the last state is observed") {
            observed.state.withLock { $0.last } == done
        }
        #expect(observed.state.withLock { $0.sums } >= 2)
        await pool.close()
        for observer in observers { try await observer.value }
    }

    @Test("tasks that are cancelled at any moment leave whole saves only")
    func cancellations() async throws {
        let folder = try StoreFolder()
        let pool = try await pool(folder)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let saving = Task { try await Self.transfer(number, pool) }
                    let reading = Task {
                        try await pool.integer("SELECT sum(amount) FROM accounts")
                    }
                    for _ in 0..<(number % 7) { await Task.yield() }
                    saving.cancel()
                    reading.cancel()
                    for result in [
                        await saving.result.map { _ in }, await reading.result.map { _ in },
                    ] {
                        if case .failure(let error) = result {
                            #expect((error as? StoreError)?.kind == .cancelled)
                        }
                    }
                }
            }
        }
        #expect(try await pool.integer("SELECT sum(amount) FROM accounts") == Self.accounts * 100)
        #expect(try await pool.integrity() == "ok")
    }
}
