import Martlet
import MartletDevice
import MartletModel
import MartletStore
import RandomKit

/// One device of the demo: its file, its name, and a person's work on it.
///
/// Every save has a mark that no other save has. The same transaction notes the mark in a table
/// that stays on the device. At the end, each save must therefore be found exactly once in the
/// server's log, or among the parked sets.
struct DemoDevice: Sendable {
    let number: Int
    let client: MartletClient
    let plan: EditPlan
    /// A text that distinguishes this demo's marks from those of another demo.
    let tag: String
    /// The name of the coach who uses it; nil if its user sees everything.
    var coach: String?
    /// The moves in the coach's view; nil if its user sees everything.
    var moves: ViewMoves?

    static let marksScript = """
        CREATE TABLE IF NOT EXISTS martlet_demo_marks(
            n INTEGER PRIMARY KEY, mark TEXT NOT NULL UNIQUE, type TEXT, id)
        """

    /// The start of a mark, which ends with a semicolon.
    var markPrefix: String { "mark-\(tag)-\(number)-" }

    func prepare() async throws {
        try await client.write { try $0.rows(Self.marksScript) }
    }

    /// Begins to keep the device in step, over a connection that stays open.
    func listen() {
        client.setPullPolicy(.live(pollingEvery: .seconds(5)))
        client.start()
    }

    /// Returns the marks of all saves that were ever made on this device.
    func marks() async throws -> [String] {
        try await client.read { context in
            try context.rows("SELECT mark FROM martlet_demo_marks ORDER BY n").compactMap {
                guard case .text(let mark)? = $0.values.first else { return nil }
                return mark
            }
        }
    }

    /// Makes one save. A save that the file's constraints or the rules refuse does not count.
    /// - Returns: True if something was saved.
    func save(_ random: inout SplitMix64) async throws -> Bool {
        let seed = random.next()
        let plan = plan
        let prefix = markPrefix
        do {
            return try await client.write { context in
                var work = DemoEdit(context: context, plan: plan, random: SplitMix64(seed: seed))
                return try work.run(prefix: prefix)
            }
        } catch is DemoEdit.NothingToDo {
            return false
        } catch let error as StoreError
            where error.kind == .constraint || error.kind == .permission
        {
            return false
        }
    }

    private static let quickTries = 12

    /// Exchanges until an exchange succeeds.
    /// - Returns: The number of failed attempts.
    func sync(tries: Int) async throws -> Int {
        var failed = 0
        while true {
            do {
                try await client.sync()
                try await moves?.look(at: client)
                return failed
            } catch let error as SyncError where error.remedy == .wait {
                failed += 1
                guard failed < tries else { throw error }
                // After so many failures in a row, a server must be down for a while.
                if failed > Self.quickTries { try await Task.sleep(for: .milliseconds(200)) }
            }
        }
    }
}
