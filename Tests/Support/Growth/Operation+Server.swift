internal import Martlet
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import SQLiteKit
internal import SetTexts
internal import SmallWorlds

extension GrowingWorld {
    /// What a client sends: its sets, one after another.
    func request(
        _ client: String, _ sets: [SetText], at revision: Revision? = nil, _ more: String = ""
    ) throws -> String {
        """
        {"clientId":"\(client)","maxRevision":\(try revision ?? node.head.revision)\(more),\
        "changeSets":[\(sets.map(\.description).joined(separator: ","))]}
        """
    }

    /// Has the server answer a client's sets, and counts that.
    @discardableResult
    func send(
        _ client: String, _ sets: [SetText], at revision: Revision? = nil,
        phase: String = "answer"
    ) throws -> SyncAnswer {
        let body = try request(client, sets, at: revision)
        return try SyncCoder.decodeAnswer(count(phase) { try ask(body) })
    }
}

extension Operation {
    // MARK: - The server's answers

    static let serving: [Operation] = [
        Operation("a request of many sets") { world, count in
            let sets = (1...count).map {
                SetText("s\($0)", sequence: $0).create("notes", "n\($0)", #""body":"b""#)
            }
            try world.send("a", sets)
            try world.send("a", sets, phase: "the same once more")
            try world.send("b", [], at: 0, phase: "fetching")
        },
        Operation("a request of many sets of one record") { world, count in
            try world.send(
                "a", [SetText("s0", sequence: 1).create("teams", "-2", #""name":"t""#)])
            try world.send(
                "a",
                (1...count).map {
                    SetText("s\($0)", sequence: $0 + 1)
                        .update("teams", "1", #""revision":1,"name":"t\#($0)""#)
                })
        },
        Operation("a request of many sets that are refused") { world, count in
            _ = try world.author(teams: count)
            let sets = (1...count).map {
                SetText("s\($0)", sequence: $0)
                    .update("teams", "\($0)", #""revision":0,"name":"t\#($0)""#)
            }
            let answer = try world.send("a", sets)
            guard answer.changeSets.filter({ $0.conflict == true }).count >= count else {
                throw SmallWorldError.endless
            }
            try world.send("a", sets, phase: "the same once more")
        },
        Operation("a set that is refused with many true rows") { world, count in
            _ = try world.author(teams: count)
            var set = SetText("s", sequence: 1)
            for number in 1...count {
                set = set.update("teams", "\(number)", #""revision":0,"name":"t""#)
            }
            try world.send("a", [set])
        },
        Operation("many refused sets that share many true rows", size: 20) { world, count in
            _ = try world.author(teams: 50)
            let sets = (1...count).map { number in
                (1...50).reduce(SetText("s\(number)", sequence: number)) {
                    $0.update("teams", "\($1)", #""revision":0,"name":"t""#)
                }
            }
            try world.send("a", sets)
        },
        Operation("many requests of a set each") { world, count in
            for number in 1...count {
                try world.send(
                    "a",
                    [
                        SetText("s\(number)", sequence: number)
                            .create("notes", "n\(number)", #""body":"b""#)
                    ])
            }
        },
        Operation("many devices with a set each") { world, count in
            for number in 1...count {
                try world.send(
                    "device-\(number)",
                    [SetText("s\(number)", sequence: 1).create("teams", "-2", #""name":"b""#)])
            }
            for number in 1...count {
                try world.send("device-\(number)", [], phase: "asking again")
            }
        },
        Operation("sets that wait for one that never comes") { world, count in
            try world.send(
                "a",
                (1...count).map {
                    SetText("s\($0)", sequence: $0 + 1, after: $0 == 1 ? "never" : "s\($0 - 1)")
                        .create("notes", "n\($0)", #""body":"b""#)
                })
        },
        Operation("a set of new records that refer to each other, the last first") { world, count in
            var set = SetText("s", sequence: 1)
            for number in stride(from: count, to: 0, by: -1) {
                let parent = number == 1 ? "null" : "\(-number)"
                set = set.create(
                    "teams", "\(-1 - number)", #""name":"t","parent_id":\#(parent)"#)
            }
            try world.send("a", [set])
            try world.send("b", [], at: 0, phase: "fetching")
        },
        Operation("a delete that reaches through many levels") { world, count in
            let author = try world.device()
            try author.write { context in
                var last: SQLValue = .null
                for _ in 0..<count {
                    last = try context.insert("teams", ["name": "t", "parent_id": last])
                        .sqlValue
                }
            }
            try world.sync(author)
            let other = try world.device()
            try world.sync(other)
            try world.send(
                "a", [SetText("s", sequence: 1).delete("teams", "1", #""revision":1"#)])
            guard try author.rows("SELECT * FROM teams") == count else { return }
            try world.countSync(other, "fetching")
            guard try other.rows("SELECT * FROM teams") == 0 else { throw SmallWorldError.endless }
        },
        Operation("one set that deletes and makes again what it names", size: 50) { world, count in
            _ = try world.author(teams: 1, notes: count)
            var set = SetText("s", sequence: 1)
            for number in 0..<count {
                set = set.delete("notes", "n\(number)", #""revision":1"#)
                    .create("notes", "m\(number)", #""body":"b","team_id":1"#)
            }
            try world.send("a", [set])
        },
        Operation("compaction of many entries, and what comes after it") { world, count in
            let author = try world.author(teams: 10)
            try world.save(author, 0..<count) {
                try $0.update("teams", .integer(Int64($1 % 10 + 1)), ["name": .text("\($1)")])
            }
            try world.sync(author)
            try world.count("compact") { world.server.compact() }
            try world.send("b", [], at: 0, phase: "fetching")
            world.server.close()
            try world.count("start") { try world.server.open() }
        },
        Operation("one transaction of another program", size: 200) { world, count in
            try world.outside(
                """
                INSERT INTO notes WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n \
                LIMIT \(count)) SELECT 'n' || n, 'body', NULL FROM n
                """)
            try world.count("taking in") { while try world.node.takeExternalWrites(now: 0) {} }
            try world.outside("UPDATE notes SET body = 'other'")
            try world.count("taking in") { while try world.node.takeExternalWrites(now: 0) {} }
            try world.send("b", [], at: 0, phase: "fetching")
        },
        Operation("a backlog of small transactions of another program") { world, count in
            _ = try world.author(teams: 1)
            let program = try world.server.connection()
            for number in 0..<count {
                try program.execute(
                    """
                    BEGIN; INSERT INTO notes VALUES ('n\(number)', 'b', 1);
                    UPDATE teams SET city = '\(number)'; COMMIT
                    """)
            }
            try world.count("taking in") { while try world.node.takeExternalWrites(now: 0) {} }
            try world.send("b", [], at: 0, phase: "fetching")
        },
        Operation("batches among small transactions of another program") { world, count in
            _ = try world.author(teams: 1)
            let program = try world.server.connection()
            for number in 1...count {
                try program.execute("INSERT INTO notes VALUES ('n\(number)', 'b', 1)")
                try world.send(
                    "a",
                    [
                        SetText("s\(number)", sequence: number)
                            .create("notes", "m\(number)", #""body":"b""#)
                    ])
            }
        },
        Operation("starting with a long log") { world, count in
            let author = try world.author(teams: 1)
            try world.save(author, 0..<count) { context, _ in
                try context.insert("players", ["name": "P"])
            }
            try world.sync(author)
            world.server.close()
            try world.count("start") { try world.server.open() }
        },
    ]

    // MARK: - Shapes

    private static func columns(_ count: Int) -> [String] { (0..<count).map { "c\($0)" } }

    static let shapes: [Operation] = [
        Operation(
            "a table of many columns", size: 40,
            scripts: {
                "CREATE TABLE wide(id INTEGER PRIMARY KEY, \(columns($0).joined(separator: ", ")))"
            }
        ) { world, count in
            let device = try world.device()
            let all = RecordValues(
                names: columns(count), values: columns(count).map { .text($0) })
            try world.count("save") {
                try world.save(device, 0..<10) { context, _ in try context.insert("wide", all) }
            }
            try world.countSync(device)
            try world.count("narrow save") {
                try world.save(device, 0..<10) {
                    try $0.update("wide", .integer(Int64($1 + 1)), ["c7": "x"])
                }
            }
            try world.countSync(device, "exchange of narrow saves")
            try world.countSync(world.device(), "fetching")
            try world.outside("UPDATE wide SET c3 = 'y'")
            try world.count("taking in") { while try world.node.takeExternalWrites(now: 0) {} }
        },
        // SQLite has no index on its list of tables, and looks for each in all of it.
        Operation(
            "many tables", size: 8, allowed: 40,
            scripts: { count in
                (0..<count).map { number in
                    let target = number == 0 ? 0 : number - 1
                    return """
                        CREATE TABLE t\(number)(id INTEGER PRIMARY KEY, name TEXT,
                            other INTEGER REFERENCES t\(target)(id) ON DELETE CASCADE);
                        CREATE INDEX i\(number) ON t\(number)(other);
                        """
                }.joined()
            }
        ) { world, count in
            let device = try world.count("open") { try world.device() }
            try world.count("save to all") {
                try device.write { context in
                    for number in 0..<count {
                        try context.insert("t\(number)", ["name": "n"])
                    }
                }
            }
            try world.countSync(device)
            try world.count("saves to one") {
                try world.save(device, 0..<count) { context, _ in
                    try context.insert("t0", ["name": "n"])
                }
            }
            try world.countSync(device, "exchange of saves to one")
            try world.countSync(world.device(), "fetching")
            try world.count("delete") { _ = try device.write { try $0.delete("t0", .integer(1)) } }
            try world.countSync(device, "exchange of the delete")
            world.server.close()
            try world.count("start") { try world.server.open() }
        },
        Operation("large texts", size: 3_000, allowed: 12) { world, count in
            let device = try world.device()
            let text = String(repeating: "\u{1}\"é", count: count)
            try world.count("save") {
                try world.save(device, 0..<5) {
                    try $0.insert("notes", ["body": .text(text)], id: "n\($1)")
                }
            }
            try world.countSync(device)
            try world.countSync(world.device(), "fetching")
        },
    ]
}
