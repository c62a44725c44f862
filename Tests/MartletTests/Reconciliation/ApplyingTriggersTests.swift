import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Triggers and remote change")
struct ApplyingTriggersTests {
    private static let watching = """
        CREATE TRIGGER app_watch AFTER INSERT ON teams BEGIN
            INSERT INTO seen VALUES (NEW.name);
        END
        """

    private func team(_ id: Int64, at revision: Int64, _ name: String) -> ChangeSet {
        .entry(revision, .created("teams", id, at: revision, ["name": .text(name)]))
    }

    @Test("capture notes what is written after remote change came in, and nothing of that")
    func captureGoesOn() throws {
        let device = try DeviceFixture()
        for revision in Int64(1)...3 {
            try device.apply([team(revision, at: revision, "Team")], reaching: revision)
            try DeviceFixture.shell(
                "UPDATE teams SET city = 'Rome' WHERE id = \(revision)", path: device.path)
            try device.write { try $0.insert("notes", ["body": .text("n\(revision)")]) }
        }
        let sets = try device.gather().changeSets
        #expect(sets.count == 6)
        #expect(sets.flatMap(\.types).map(\.name).filter { $0 == "teams" }.count == 3)
    }

    @Test("the app's triggers see what comes in, those made after the file was opened too")
    func appTriggers() throws {
        let device = try DeviceFixture()
        try device.apply([team(1, at: 1, "Falcons")], reaching: 1)
        try DeviceFixture.shell(
            "CREATE VIRTUAL TABLE seen USING fts5(name); \(Self.watching)", path: device.path)
        try device.apply([team(2, at: 2, "Ravens")], reaching: 2)
        #expect(try device.rows("SELECT name FROM seen") == [["Ravens"]])
        try DeviceFixture.shell("DROP TRIGGER app_watch", path: device.path)
        try device.apply([team(3, at: 3, "Owls")], reaching: 3)
        #expect(try device.rows("SELECT name FROM seen") == [["Ravens"]])
    }

    @Test("a record written anew under its own key costs the same among many as among few")
    func replacing() throws {
        func steps(among count: Int64) throws -> Int32 {
            let device = try DeviceFixture()
            let teams = (1...count).map { team($0, at: $0, "Team \($0)") }
            try device.apply(teams, reaching: count)
            let connection = try Connection(path: device.path)
            let replace = try connection.prepare(
                "INSERT OR REPLACE INTO teams VALUES (1, 'Hawks', 'Rome')")
            try replace.run()
            return replace.takeVirtualMachineSteps()
        }
        #expect(try steps(among: 400) < steps(among: 4) + 40)
    }
}
