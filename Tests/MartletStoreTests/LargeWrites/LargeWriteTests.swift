import Foundation
import MartletModel
import MartletStore
import Synchronization
import Testing
import Waiting

@Suite("Large writes", .timeLimit(.minutes(5)))
struct LargeWriteTests {
    private static let script = """
        CREATE TABLE clubs(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE matches(
            id INTEGER PRIMARY KEY, home INTEGER NOT NULL REFERENCES clubs,
            away INTEGER NOT NULL REFERENCES clubs, note CHECK (note <> 'bad'));
        CREATE TABLE tags(code TEXT PRIMARY KEY, club INTEGER REFERENCES clubs);

        """
    struct Club: Codable, ReadableRecord, Sendable {
        var id: RecordID?
        var name: String
    }
    struct Match: Codable, ReadableRecord, Sendable {
        var id: RecordID?
        var home: RecordID
        var away: RecordID
        var note: String?
    }

    private let clubs = PlainTable("clubs", of: Club.self)
    private let matches = PlainTable("matches", of: Match.self)
    private let tags = PlainTable("tags")

    /// Gathers 20 clubs and 380 matches among them.
    private func gather(_ load: LargeWrite, bad: Int? = nil) async throws {
        let keys = try await load.insert((0..<20).map { Club(name: "Club \($0)") }, into: clubs)
        #expect(Set(keys).count == 20)
        for home in 0..<20 {
            let games = (0..<20).filter { $0 != home }.map { away in
                Match(
                    home: keys[home], away: keys[away],
                    note: home == bad ? "bad" : "\(home)-\(away)")
            }
            try await load.insert(games, into: matches)
        }
        try await load.insert(
            [RecordValues(names: ["code", "club"], values: ["x", SQLValue(keys[3])])], into: tags)
        try await load.update([Club(id: keys[7], name: "Renamed")], in: clubs)
    }

    /// Returns every match by the clubs' names, so that keys do not matter.
    private func world(_ pool: DatabasePool) async throws -> [String] {
        try await pool.read { context in
            var lines: [String] = []
            try context.forEachRow(
                """
                SELECT note || ' ' || h.name || ' ' || a.name FROM matches
                JOIN clubs h ON h.id = home JOIN clubs a ON a.id = away ORDER BY matches.id
                """
            ) { lines.append(try $0.get(at: 0)) }
            return lines
        }
    }

    private static var expected: [String] {
        let names = (0..<20).map { $0 == 7 ? "Renamed" : "Club \($0)" }
        return (0..<20).flatMap { home in
            (0..<20).filter { $0 != home }.map { "\(home)-\($0) \(names[home]) \(names[$0])" }
        }
    }

    @Test("what was gathered is written in small saves, with references among it")
    func wholeInSmallSaves() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        // These keys are taken already.
        try await pool.write { try clubs.insert(Club(name: "Old"), in: $0) }
        let parent = folder.url.appendingPathComponent("large")
        let load = try await LargeWrite.open("season/26", in: parent, into: pool)
        #expect(try await !load.isGathered)
        try await gather(load)
        #expect(try await pool.integer("SELECT count(*) FROM matches") == 0)
        #expect(try LargeWrite.unfinished(in: parent).isEmpty)
        let early = await refusal { try await load.run() }
        #expect(early?.kind == .misuse)
        try await load.endGathering()
        let late = await refusal { try await load.insert([Club(name: "Late")], into: clubs) }
        #expect(late?.kind == .misuse)
        let told = Mutex<[Int]>([])
        let end = try await load.run(recordsPerSave: 100) { state in
            told.withLock { $0.append(state.done) }
        }
        #expect(end.done == 402)
        #expect(told.withLock { $0 } == [100, 200, 300, 400, 402])
        #expect(try await world(pool) == Self.expected)
        #expect(
            try await pool.integer("SELECT count(*) FROM tags JOIN clubs ON id = club") == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: parent.path).isEmpty)
        #expect(try await pool.integer("SELECT count(*) FROM martlet_large_keys") == 0)
        let over = await refusal { try await load.run() }
        #expect(over?.kind == .misuse)
        await pool.close()
    }

    @Test("one that was stopped anywhere goes on where it was, and does nothing twice")
    func resumes() async throws {
        let folder = try StoreFolder()
        // The hook refuses each write after the given number.
        let room = Mutex(0)
        var hooks = WriteHooks()
        hooks.before([.insert, .update]) { _, _ in
            let isFull = room.withLock { room in
                room -= 1
                return room < 0
            }
            if isFull { throw StoreError(.vetoed, "The power is gone.") }
        }
        let given = hooks
        let pool = try await folder.pool(script: Self.script) { $0.hooks = given }
        let parent = folder.url.appendingPathComponent("large")
        try await gatherOnly(parent, pool)
        try await waitUntil("it is listed") {
            try LargeWrite.unfinished(in: parent) == ["season"]
        }
        var runs = 0
        var isDone = false
        while !isDone {
            runs += 1
            room.withLock { $0 = 90 }
            isDone = try await runOnce(parent, pool)
            let count = try await pool.integer(
                "SELECT (SELECT count(*) FROM clubs) + (SELECT count(*) FROM matches)")
            // All saves have 40 records.
            #expect(count % 40 == 0)
        }
        #expect(runs > 4)
        #expect(try await world(pool) == Self.expected)
        await pool.close()
    }

    private func gatherOnly(_ parent: URL, _ pool: DatabasePool) async throws {
        let load = try await LargeWrite.open("season", in: parent, into: pool)
        try await gather(load)
        try await load.endGathering()
    }

    /// Opens the file as after a restart, and runs until a write is refused or everything is
    /// written.
    /// - Returns: Whether everything is written.
    private func runOnce(_ parent: URL, _ pool: DatabasePool) async throws -> Bool {
        let load = try await opened("season", parent, pool)
        #expect(try await load.isGathered)
        let again = await refusal { try await LargeWrite.open("season", in: parent, into: pool) }
        #expect(again?.kind == .busy)
        do {
            try await load.run(recordsPerSave: 40)
            return true
        } catch let error as StoreError {
            #expect(error.kind == .vetoed)
            #expect(error.message.contains("of the large write “season”"))
            return false
        }
    }

    /// Opens the large write once the earlier holder has released its file.
    private func opened(
        _ name: String, _ parent: URL, _ pool: DatabasePool
    ) async throws -> LargeWrite {
        var load: LargeWrite?
        try await waitUntil("the file is free") {
            do {
                load = try await LargeWrite.open(name, in: parent, into: pool)
            } catch let error as StoreError where error.kind == .busy {
                return false
            }
            return true
        }
        return try #require(load)
    }

    @Test("gathering that was cut short begins from nothing; a discarded one leaves nothing")
    func cutShort() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let parent = folder.url.appendingPathComponent("large")
        try await gatherHalf(parent, pool)
        let load = try await opened("half", parent, pool)
        #expect(try await !load.isGathered)
        try await load.insert([Club(name: "Only")], into: clubs)
        try await load.endGathering()
        try await load.run()
        #expect(try await pool.integer("SELECT count(*) FROM clubs") == 1)
        let second = try await LargeWrite.open("half", in: parent, into: pool)
        try await second.insert([Club(name: "Second")], into: clubs)
        try await second.endGathering()
        try await second.discard()
        #expect(try LargeWrite.unfinished(in: parent).isEmpty)
        #expect(try await pool.integer("SELECT count(*) FROM clubs") == 1)
        await pool.close()
    }

    private func gatherHalf(_ parent: URL, _ pool: DatabasePool) async throws {
        let load = try await LargeWrite.open("half", in: parent, into: pool)
        try await load.insert([Club(name: "Lost")], into: clubs)
    }

    @Test("a record the database refuses stops it, or is left out where the app says so")
    func refusedRecordWhileGathering() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let parent = folder.url.appendingPathComponent("large")
        let load = try await LargeWrite.open("season", in: parent, into: pool)
        // Records that no table takes are refused while they are gathered.
        let unknown = await refusal {
            try await load.insert(
                [RecordValues(names: ["nmae"], values: ["x"])], into: PlainTable("clubs"))
        }
        #expect(unknown?.kind == .unknown)
        try await gather(load, bad: 4)
        try await load.endGathering()
        let error = await refusal { try await load.run(recordsPerSave: 50) }
        #expect(error?.kind == .constraint)
        let seen = Mutex<[String]>([])
        let end = try await load.run(
            recordsPerSave: 50,
            refused: { refusal in
                seen.withLock { $0.append(refusal.table) }
                return refusal.error.kind == .constraint
            })
        #expect(end.refused == 19)
        #expect(seen.withLock { $0 } == Array(repeating: "matches", count: 19))
        #expect(try await world(pool) == Self.expected.filter { !$0.hasPrefix("4-") })
        await pool.close()
    }

    @Test("what a clause or a trigger passes over stops it: nothing is left out in silence")
    func passedOverStopsGathering() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: """
                CREATE TABLE codes(id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT IGNORE);
                CREATE TRIGGER kept BEFORE DELETE ON codes WHEN OLD.id = 2 BEGIN SELECT RAISE(IGNORE); END;
                INSERT INTO codes VALUES (1, 'a'), (2, 'b'), (3, 'c');
                """)
        let codes = PlainTable("codes")
        func changed(_ id: Int64, _ code: String) -> RecordValues {
            RecordValues(names: ["id", "code"], values: [.integer(id), .text(code)])
        }
        let load = try await LargeWrite.open(
            "codes", in: folder.url.appendingPathComponent("large"), into: pool)
        // There is no record 9, and it is not created.
        try await load.update([changed(9, "x"), changed(3, "b"), changed(3, "d")], in: codes)
        try await load.delete([.integer(9), .integer(2)], from: codes)
        try await load.endGathering()
        let error = await refusal { try await load.run() }
        #expect(error?.kind == .constraint)
        #expect(error?.message.hasPrefix("Record 2 of the large write “codes”: SQLite") == true)
        let keys = Mutex<[RecordID?]>([])
        let end = try await load.run(refused: { refusal in
            keys.withLock { $0.append(refusal.error.key) }
            return true
        })
        #expect(end.refused == 2)
        #expect(keys.withLock { $0 } == [.integer(3), .integer(2)])
        #expect(
            try await pool.integer("SELECT count(*) FROM codes WHERE code IN ('a', 'b', 'd')") == 3)
        await pool.close()
    }
}
