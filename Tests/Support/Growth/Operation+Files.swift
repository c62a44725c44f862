internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import RandomKit
internal import SQLiteFaults
internal import SQLiteKit
internal import SmallWorlds

extension Operation {
    // MARK: - Other programs on a device

    static let others: [Operation] = [
        Operation("one statement of another program on a device") { world, count in
            let device = try world.device()
            try device.connection().execute(
                """
                INSERT INTO notes WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n \
                LIMIT \(count)) SELECT 'n' || n, 'body', NULL FROM n
                """)
            try world.countSync(device)
        },
        Operation("many transactions of another program between saves") { world, count in
            let device = try world.author(teams: 1)
            let program = try device.connection()
            for number in 0..<count {
                try program.execute("INSERT INTO notes VALUES ('n\(number)', 'b', NULL)")
                try world.count("save") {
                    try device.write {
                        try $0.update("teams", .integer(1), ["name": .text("\(number)")])
                    }
                }
            }
            try world.countSync(device)
        },
        Operation("many transactions of another program before a save") { world, count in
            let device = try world.author(teams: 1)
            let program = try device.connection()
            for number in 0..<count {
                try program.execute("INSERT INTO notes VALUES ('n\(number)', 'b', NULL)")
                try program.execute("UPDATE teams SET city = '\(number)'")
            }
            try world.countSync(device)
        },
        Operation("another program's chain of references, the last first") { world, count in
            let device = try world.device()
            let program = try device.connection()
            try program.execute(
                "BEGIN;"
                    + (1...count).map { number in
                        let parent = number == count ? "NULL" : "\(-3 - number)"
                        return
                            "INSERT INTO teams(id, name, parent_id) VALUES (\(-2 - number), 't', \(parent));"
                    }.joined() + "COMMIT")
            try world.countSync(device)
        },
        // The smaller one fits one set, so nothing is moved.
        Operation("a large write of another program that is cut", size: 1_000, allowed: 20) {
            world, count in
            let device = try world.device()
            try device.connection().execute(
                """
                INSERT INTO teams(id, name, parent_id) WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL \
                SELECT n + 1 FROM n LIMIT \(count)) SELECT -2 - n, 't', iif(n > 1, -1 - n, NULL) FROM n
                """)
            try world.countSync(device)
        },
        Operation("records that cannot be sent, beside saves") { world, count in
            let device = try world.author(teams: 1)
            let program = try device.connection()
            try program.execute(
                """
                INSERT INTO players(id, score) WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL \
                SELECT n + 1 FROM n LIMIT \(count)) SELECT -2 - n, 9e999 FROM n
                """)
            try world.countSync(device)
            guard try device.store.withheldCount == count else { throw SmallWorldError.endless }
            try world.count("save") {
                try world.save(device, 0..<count) {
                    try $0.update("teams", .integer(1), ["name": .text("\($1)")])
                }
            }
            try world.countSync(device, "exchange of saves")
            try world.count("mend") {
                try program.execute("UPDATE players SET score = 1")
                try world.sync(device)
            }
        },
        Operation("a chain of records of which the first cannot be sent") { world, count in
            let device = try world.device()
            let program = try device.connection()
            try program.execute(
                "BEGIN;"
                    + (1...count).map { number in
                        let parent = number == count ? "NULL" : "\(-3 - number)"
                        let name = number == count ? "x'ff'" : "'t'"
                        return """
                            INSERT INTO teams(id, name, parent_id) VALUES \
                            (\(-2 - number), \(name), \(parent));
                            """
                    }.joined() + "COMMIT")
            try world.countSync(device)
        },
    ]

    // MARK: - A device's file

    static let files: [Operation] = [
        Operation("opening a file with a queue") { world, count in
            let device = try world.conflicts(count)
            device.close()
            try world.count("open") { try device.open(script: world.script) }
        },
        Operation("refetching with a queue") { world, count in
            let device = try world.conflicts(count)
            try world.count("begin") { try device.beginRefetching(script: world.script) }
            try world.countSync(device)
        },
        Operation("refetching, with what is parked and not sent") { world, count in
            let device = try world.conflicts(count)
            try world.sync(device)
            try world.save(device, 0..<count) { context, number in
                try context.insert("notes", ["body": "n"], id: "m\(number)")
            }
            try world.count("begin") { try device.beginRefetching(script: world.script) }
            try world.countSync(device)
        },
        Operation("a server that was restored from a backup") { world, count in
            let device = try world.author(teams: 2)
            let backup = try world.world.restoredServer()
            try world.save(device, 0..<count) {
                try $0.update("teams", .integer(Int64(1 + $1 % 2)), ["name": .text("\($1)")])
            }
            try world.sync(device)
            try world.save(device, 0..<count) { context, number in
                try context.insert("notes", ["body": "n"], id: "m\(number)")
            }
            try world.count("exchange") { try device.sync(with: backup) }
        },
        Operation("beginning with a snapshot, and saves", size: 200) { world, count in
            _ = try world.author(teams: count, players: count)
            let device = try world.device()
            try world.save(device, 0..<count / 4) { context, number in
                try context.insert("notes", ["body": "n"], id: "m\(number)")
            }
            device.snapshot = try world.count("making") { try world.server.snapshot() }
            device.close()
            try device.open(script: world.script)
            try world.countSync(device)
            guard try device.rows("SELECT * FROM players") == count else {
                throw SmallWorldError.endless
            }
        },
        Operation("rows that a device's tables refuse") { world, count in
            let strict = world.script.replacing(
                "name TEXT,", with: "name TEXT CHECK (name <> 'P'),")
            let author = try world.author(teams: 1)
            let device = try world.device(script: strict)
            try world.sync(device)
            try author.write { context in
                for _ in 0..<count { try context.insert("players", ["name": "P"]) }
            }
            try world.sync(author)
            try world.count("exchange") {
                for _ in 0..<3 { try device.sync(with: world.server) }
            }
            guard try device.store.quarantinedCount == count else { throw SmallWorldError.endless }
            _ = try world.count("list") { try device.store.quarantined() }
            try world.count("save") {
                try world.save(device, 0..<count) {
                    try $0.update("teams", .integer(1), ["name": .text("\($1)")])
                }
            }
            try world.countSync(device, "exchange of saves")
            _ = try world.count("retry") { try device.store.retryQuarantined(now: 1_000) }
        },
        Operation("a new version of the tables under a queue") { world, count in
            try world.migrate(count)
        },
        Operation("what a device says of itself, under a queue") { world, count in
            let device = try world.conflicts(count)
            try world.count("status") {
                _ = try (
                    device.store.outboxCount, device.store.parkedCount, device.store.withheld()
                )
                _ = try device.store.newestQueued().map {
                    try device.store.changes(of: $0.identifier)
                }
                _ = try device.store.quarantinedCount
            }
        },
    ]
}

extension SmallDevice {
    /// How many rows a query has.
    func rows(_ sql: String) throws -> Int {
        try Int(connection().integer("SELECT count(*) FROM (\(sql))") ?? 0)
    }
}

extension GrowingWorld {
    /// Leads a file with a queue through a version that renames, adds, drops and rewrites.
    func migrate(_ count: Int) throws {
        let disk = FaultDisk(name: DiskName.next("migrated"), countsWork: true)
        disks.append(disk)
        var bits = SplitMix64(seed: 1)
        let first = Migration(1, "tables") { try $0.create(Self.script) }
        let second = Migration(2, "changes") { context in
            try context.renameColumn("city", to: "town", in: "teams")
            try context.addColumn("colour TEXT NOT NULL DEFAULT 'red'", to: "teams")
            try context.dropColumn("score", from: "players")
            try context.execute("UPDATE players SET name = upper(name)")
        }
        func open(_ list: [Migration]) throws -> DeviceStore {
            try DeviceStore(
                path: "device.sqlite", migrations: Migrations(list), vfs: disk.vfsName, now: 1_000,
                randomBits: { bits.next() })
        }
        do {
            let store = try open([first])
            for number in 0..<count {
                _ = try store.write(now: 1_000) { context in
                    let team = try context.insert("teams", ["name": "t", "city": "Oslo"])
                    try context.insert(
                        "players", ["team_id": team.sqlValue, "name": "p", "score": .real(1.5)])
                    try context.update("teams", .integer(-2), ["city": .text("c\(number)")])
                }
            }
        }
        _ = try self.count("migrate") { try open([first, second]) }
    }
}
