import Martlet
import MartletDevice
import MartletModel
import MartletStore
import RandomKit

/// One device of the demo: its own file, its own name, and somebody who works on it.
///
/// Every save carries a mark that no other save has, and the mark is noted in the same transaction
/// in a table that stays on the device. So in the end each save can be looked for: in the server's
/// log, exactly once, or among the parked ones.
struct DemoDevice: Sendable {
    let number: Int
    let client: MartletClient
    let plan: EditPlan
    /// Sets this demo's marks apart from those in records that came from another demo.
    let tag: String

    static let marksScript = """
        CREATE TABLE IF NOT EXISTS martlet_demo_marks(
            n INTEGER PRIMARY KEY, mark TEXT NOT NULL UNIQUE, type TEXT, id)
        """

    /// What a mark begins with; it ends with a semicolon.
    var markPrefix: String { "mark-\(tag)-\(number)-" }

    func prepare() async throws {
        try await client.write { try $0.rows(Self.marksScript) }
    }

    /// Keeps in step by itself from now on, over a connection that is kept open.
    func listen() {
        client.setPullPolicy(.live(pollingEvery: .seconds(5)))
        client.start()
    }

    /// The marks of all saves ever made on this device.
    func marks() async throws -> [String] {
        try await client.read { context in
            try context.rows("SELECT mark FROM martlet_demo_marks ORDER BY n").compactMap {
                guard case .text(let mark)? = $0.values.first else { return nil }
                return mark
            }
        }
    }

    /// Makes one save. A save that the file's own constraints refuse is none.
    /// - Returns: Whether something was saved.
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
        } catch let error as StoreError where error.kind == .constraint {
            return false
        }
    }

    private static let quickTries = 12

    /// Exchanges until it works.
    /// - Returns: How many tries failed.
    func sync(tries: Int) async throws -> Int {
        var failed = 0
        while true {
            do {
                try await client.sync()
                return failed
            } catch let error as SyncError where error.remedy == .wait {
                failed += 1
                guard failed < tries else { throw error }
                // So many in a row are no accident of the network: a server is down for a while.
                if failed > Self.quickTries { try await Task.sleep(for: .milliseconds(200)) }
            }
        }
    }
}
