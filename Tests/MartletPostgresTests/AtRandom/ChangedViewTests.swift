import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

/// Policies on tables that a `TableChange` changes, and what devices have of their rows.
private final class ChangedViews {
    /// The records that a view showed before the change.
    private struct Standing {
        let policies: String
        var revision: Revision
        /// The keys of the type views, and the records that they showed.
        var types: [String: (key: [UInt8], shown: Set<String>)] = [:]
    }

    private typealias Members = [String: (isShown: Bool, moved: Revision)]

    /// A condition for each column, which holds for some of the rows.
    private static let conditions = [
        "title": "title = 'a'", "n": "n = 1", "m": "m > 5", "code": "code <> 'c1'",
        "list": "list = 1", "price": "price > 1", "data": "data IS NULL", "mood": "mood = 'fine'",
        "feel": "feel = 'fine'", "word": "word = 'w'", "twice": "twice = 20", "at": "at IS NULL",
        "id": "id > 2",
    ]

    private let address: PostgresAddress
    private let other: PostgresConnection
    private let sql: String
    private let mayFail: Bool
    private(set) var faults: [String] = []
    /// How many type views were compared, and how many records entered or left them.
    private(set) var counts = (compared: 0, moved: 0)

    init(_ address: PostgresAddress, _ change: TableChange) throws {
        self.address = address
        sql = change.sql.replacing("#", with: "0")
        mayFail = change.mayFail
        other = try PostgresConnection(address)
        // Some changes name the role.
        try other.execute(
            """
            DO $$ BEGIN CREATE ROLE \(SmallServer.role) LOGIN REPLICATION PASSWORD 'owner';
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
            \(TableChange.script.replacing("#", with: "0"))
            """)
        _ = try PostgresAdoption(on: other, now: 1).adopt(
            .init(name: "team", tables: ["lists0", "items0"]))
    }

    deinit { other.close() }

    /// Rules by which the rows themselves decide, and rules by which they decide about rows to which they refer; for
    /// each column that the change names, and for one more.
    private var policies: [String] {
        let words = Set(sql.split { !$0.isLetter && !$0.isNumber }.map(String.init) + ["n"])
        return Self.conditions.keys.sorted().filter(words.contains).flatMap { column in
            let condition = Self.conditions[column] ?? ""
            let own = "CREATE POLICY own ON items0 USING (\(condition));\n"
            return [
                own + "CREATE POLICY every ON lists0 USING (true);\n",
                own + """
                    CREATE POLICY own ON lists0 USING (EXISTS (
                        SELECT 1 FROM items0 AS i WHERE i.list = lists0.id AND i.\(condition)));

                    """,
            ]
        }
    }

    func live() throws {
        let before = try PolicyServer(address, nil)
        let standings = try policies.compactMap { policies -> Standing? in
            guard try ask(before, policies) else { return nil }
            var standing = Standing(policies: policies, revision: before.node.head.revision)
            for (type, (key, members)) in try members(before) {
                standing.types[type] = (key, Set(members.filter(\.value.isShown).keys))
            }
            return standing
        }
        do {
            try other.execute(sql)
        } catch {
            if !mayFail { throw error }
        }
        // Exchanged names are taken up, as after an adoption has confirmed them.
        let after = try PolicyServer(address, nil)
        for standing in standings { try compare(after, standing) }
    }

    /// Has the views of a new device computed.
    /// - Returns: False if the tables do not fit the policies, so that nobody is answered.
    private func ask(_ server: PolicyServer, _ policies: String) throws -> Bool {
        guard let program = try? RulesProgram(policies, schema: server.node.schema) else {
            return false
        }
        server.node.policies = program
        _ = try server.answer()
        return true
    }

    private func members(
        _ server: PolicyServer
    ) throws -> [String: (key: [UInt8], members: Members)] {
        var found: [String: (key: [UInt8], members: Members)] = [:]
        for type in ["items0", "lists0"] {
            guard let key = server.key("ann", of: type) else { continue }
            let rows = try other.query(
                """
                SELECT m.id, m.shown, m.moved FROM _martlet.members AS m
                JOIN _martlet.type_views AS v ON v.number = m.view WHERE v.key = $1
                """, [.binary(key)])
            var members: Members = [:]
            for row in 0..<rows.count {
                members[try rows.text(row, 0)] = (
                    try rows.boolean(row, 1), try rows.integer(row, 2)
                )
            }
            found[type] = (key, members)
        }
        return found
    }

    /// Compares the records of a device that comes back with those of a new device.
    private func compare(_ server: PolicyServer, _ standing: Standing) throws {
        guard try ask(server, standing.policies) else { return }
        let back = try members(server)
        // Other rules make other views, for which nothing has been computed.
        let others = "CREATE POLICY none ON lists0 TO nobody USING (true);\n"
        guard try ask(server, standing.policies + others) else { return }
        for (type, (_, fresh)) in try members(server) {
            // With other columns, views have other keys, and devices move between two views.
            guard let (key, shown) = standing.types[type], let back = back[type], key == back.key
            else { continue }
            var has = shown
            for (id, member) in back.members where member.moved > standing.revision {
                if member.isShown { has.insert(id) } else { has.remove(id) }
            }
            let wanted = Set(fresh.filter(\.value.isShown).keys)
            counts.compared += 1
            counts.moved += wanted.symmetricDifference(shown).count
            guard has != wanted else { continue }
            faults.append(
                """
                \(sql)
                \(standing.policies)\(type): a device has \(has.sorted()), and a new one \(wanted.sorted())
                """)
        }
    }
}

@Suite("Views, and tables that other programs change: every form of ALTER TABLE")
struct ChangedViewTests {
    @Test("show a device that comes back what they show a new one")
    func matrix() async throws {
        // Each form has a database, and nothing has to outlive a crash of this server.
        let servers = try await DatabaseServers.start(["--postgres", "--set", "fsync=off"])
        var counts = (compared: 0, moved: 0)
        for form in TableChange.all where !form.isObstacle {
            let database = try await TestDatabase.make(on: servers)
            let (faults, compared, moved) = try await TestDatabase.blocking {
                let views = try ChangedViews(database.address, form)
                try views.live()
                return (views.faults, views.counts.compared, views.counts.moved)
            }
            #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
            counts = (counts.compared + compared, counts.moved + moved)
        }
        // Neither “never” nor “nothing moves” would pass.
        #expect(counts.compared > 150 && counts.moved > 30, "\(counts)")
    }

    @Test("have the rows of each type, also if the types have enumerations of their own")
    func enumerations() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TYPE mood AS ENUM ('fine'); CREATE TYPE size AS ENUM ('big');
                CREATE TABLE a (id bigserial PRIMARY KEY, mood mood); INSERT INTO a (mood) VALUES ('fine');
                CREATE TABLE b (id bigserial PRIMARY KEY, size size); INSERT INTO b (size) VALUES ('big');
                """)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "team", tables: ["a", "b"]))
            let server = try PolicyServer(
                database.address,
                """
                CREATE POLICY own ON a USING (mood = 'fine' AND id > 0);
                CREATE POLICY own ON b USING (size = 'big' AND id > 0);
                """)
            let types = try server.answer().changeSets.flatMap(\.types)
            #expect(types.map(\.name) == ["a", "b"] && types.allSatisfy { $0.update.count == 1 })
        }
    }
}
