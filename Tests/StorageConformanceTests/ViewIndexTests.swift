import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

/// A change costs the server as much as the people whom it concerns are many, however many there are.
@Suite("The index of views")
struct ViewIndexTests {
    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE members (
            id INTEGER PRIMARY KEY, person TEXT, team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT, team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        """

    /// The players are found by two steps: the teams that somebody sees, and his memberships.
    private static let rules = """
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY self ON members FOR SELECT USING (person = martlet_user());
        CREATE POLICY mine ON teams FOR SELECT USING (EXISTS (
            SELECT 1 FROM members WHERE members.team_id = teams.id AND person = martlet_user()));
        CREATE POLICY team ON players FOR SELECT USING (team_id IN (SELECT id FROM teams));
        """

    private static let office = Principal(name: "o", user: "olga", roles: ["office"])

    /// The devices of people who are a member of one team each, and up to date.
    private final class Club {
        let server: TestDataSet
        let devices: [ViewedDevice]
        /// True if a set woke some listeners and not others.
        private(set) var isSelective = false

        init(_ kind: StorageKind, people: Int) async throws {
            server = try await TestDataSet(kind, ViewIndexTests.schema)
            try server.secure(by: ViewIndexTests.rules)
            var set = SetText()
            for number in 1...people {
                set = set.create("teams", "-\(number)", #""name":"T""#)
                    .create(
                        "members", "-\(number)", #""person":"p\#(number)","team_id":-\#(number)"#
                    )
                    .create("players", "-\(number)", #""name":"P","team_id":-\#(number)"#)
            }
            try server.send(set, from: "office", as: office)
            devices = (1...people).map {
                ViewedDevice("d\($0)", Principal(name: "t\($0)", user: "p\($0)"))
            }
            for device in devices {
                try device.exchange(with: server)
                #expect(device.records["players"]?.count == 1)
            }
        }

        /// Sends a set, and has each device that is told exchange.
        /// - Returns: The devices that were told, and how many rows were judged.
        func send(_ set: SetText) throws -> (told: [String], judged: Int) {
            let before = server.node.viewIndex.judged
            let head = server.node.head.revision
            try server.send(set, from: "office", as: office)
            var told: [String] = []
            for device in devices {
                var request = DeltaRequest(principal: device.principal, since: device.revision)
                (request.clientID, request.lineage) = (device.name, device.lineage)
                guard case .batch(let batch) = server.reader().deltas(request) else {
                    throw UnexpectedAnswer()
                }
                guard !batch.isEmpty else { continue }
                told.append(device.name)
                try device.exchange(with: server)
            }
            // Nil wakes everyone.
            if let woken = server.node.feed.views.concerned(
                after: head, through: server.node.head.revision)
            {
                let principals = devices.filter { told.contains($0.name) }.map(\.principal)
                #expect(woken.isSubset(of: principals))
                isSelective = isSelective || woken.count < devices.count
            }
            return (told, server.node.viewIndex.judged - before)
        }
    }

    @Test(
        "as people grow in number, a change is judged for those whom it concerns",
        arguments: StorageKind.all)
    func counts(kind: StorageKind) async throws {
        var judged: [[Int]] = []
        for people in [5, 40] {
            let club = try await Club(kind, people: people)
            // The first set after the views were made.
            _ = try club.send(SetText().update("teams", "1", #""revision":1,"name":"A""#))
            let player = try club.send(
                SetText().update("players", "2", #""revision":1,"name":"Q""#))
            #expect(player.told == ["d2"])
            // A person joins a team, and its players come.
            let joins = try club.send(
                SetText().create("members", "-99", #""person":"p3","team_id":4"#))
            #expect(joins.told == ["d3"])
            #expect(club.devices[2].records["players"]?.count == 2)
            // A player moves from one team to another.
            let moves = try club.send(
                SetText().update("players", "1", #""revision":1,"team_id":2"#))
            #expect(moves.told == ["d1", "d2"])
            #expect(club.devices[0].records["players"] == nil)
            // A membership ends.
            let ends = try club.send(SetText().delete("members", "3", #""revision":1"#))
            #expect(ends.told == ["d3"])
            #expect(club.devices[2].records["players"]?.keys.map(\.description) == ["4"])
            #expect(club.isSelective)
            judged.append([player, joins, moves, ends].map(\.judged))
        }
        #expect(judged[0] == judged[1])
        #expect(judged[0].allSatisfy { $0 <= 6 }, "\(judged[0])")
    }

    private static let officeRules = """
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        """

    @Test(
        "if a person's last value goes, rows without a value are judged as well",
        arguments: StorageKind.all)
    func lastValue(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.secure(
            by: Self.officeRules + """
                CREATE POLICY self ON members FOR SELECT USING (person = martlet_user());
                CREATE POLICY others ON players FOR SELECT
                    USING (team_id NOT IN (SELECT team_id FROM members));
                """)
        try server.send(
            SetText().create("teams", "-1", #""name":"T""#)
                .create("members", "-1", #""person":"p1","team_id":-1"#)
                .create("players", "-1", #""name":"Q","team_id":-1"#)
                .create("players", "-2", #""name":"R""#),
            from: "office", as: Self.office)
        let device = ViewedDevice("d1", Principal(name: "t1", user: "p1"))
        try device.exchange(with: server)
        #expect(device.records["players"] == nil)
        try server.send(
            SetText().delete("members", "1", #""revision":1"#), from: "office", as: Self.office)
        try device.exchange(with: server)
        #expect(device.records["players"]?.keys.map(\.description).sorted() == ["1", "2"])
        try server.send(
            SetText().create("members", "-2", #""person":"p1","team_id":1"#), from: "office",
            as: Self.office)
        try device.exchange(with: server)
        #expect(device.records["players"] == nil)
    }

    @Test(
        "rows are judged again after changes of rows that only they lead to",
        arguments: StorageKind.all)
    func readByRow(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.secure(
            by: Self.officeRules + """
                CREATE POLICY every ON teams FOR SELECT USING (true);
                CREATE POLICY owned ON players FOR SELECT USING (
                    (SELECT name FROM teams WHERE teams.id = players.team_id) = martlet_user());
                """)
        try server.send(
            SetText().create("teams", "-1", #""name":"p1""#)
                .create("players", "-1", #""name":"Q","team_id":-1"#),
            from: "office", as: Self.office)
        let devices = (1...2).map {
            ViewedDevice("d\($0)", Principal(name: "t\($0)", user: "p\($0)"))
        }
        for device in devices { try device.exchange(with: server) }
        #expect(devices.map { $0.records["players"]?.count } == [1, nil])
        try server.send(
            SetText().update("teams", "1", #""revision":1,"name":"p2""#), from: "office",
            as: Self.office)
        for device in devices { try device.exchange(with: server) }
        #expect(devices.map { $0.records["players"]?.count } == [nil, 1])
    }

    @Test(
        "a person whose view is lost from memory is told of everything", arguments: StorageKind.all)
    func restarts(kind: StorageKind) async throws {
        let club = try await Club(kind, people: 3)
        try club.server.restart()
        let first = try club.send(SetText().update("players", "2", #""revision":1,"name":"Q""#))
        #expect(first.told == ["d1", "d2", "d3"])
        let second = try club.send(SetText().update("players", "2", #""revision":2,"name":"R""#))
        #expect(second.told == ["d2"])
        // The writes of another program concern those whose rows they move.
        try club.server.execute("UPDATE players SET team_id = 3 WHERE id = 1")
        while club.server.node.takeExternalWrites(now: club.server.now) {}
        let third = try club.send(SetText().update("teams", "2", #""revision":1,"name":"B""#))
        #expect(third.told == ["d1", "d2", "d3"])
        #expect(club.devices[2].records["players"]?.count == 2)
    }
}
