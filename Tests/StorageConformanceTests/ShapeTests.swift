import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("Sets no state could accept")
struct ShapeTests {
    static let schema = """
        CREATE TABLE teams (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, rank INTEGER CHECK (rank > 0),
            home BOOLEAN, weight REAL, logo BLOB, fee NUMERIC, city TEXT DEFAULT 'Rome',
            parent_id INTEGER REFERENCES teams (id));
        CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
        """

    static let refused: [(set: SetText, fate: String)] = [
        (SetText().create("teams", "5", #""name":"A""#), "invalid"),
        (SetText().create("teams", "0", #""name":"A""#), "invalid"),
        (SetText().create("teams", "x", #""name":"A""#), "invalid"),
        (SetText().create("notes", "-1", #""body":"A""#), "invalid"),
        (SetText().create("nothing", "-1", #""name":"A""#), "unknownType"),
        (SetText().create("a\\\"; DROP TABLE teams", "-1", #""name":"A""#), "unknownType"),
        (SetText().create("martlet_log", "-1", #""revision":"A""#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","colour":"red""#), "unknownAttribute"),
        (SetText().create("teams", "-1", #""name":"A","id":7"#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","revision":7"#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","__oldId__":-7"#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","__proto__":1"#), "invalid"),
        (SetText().create("teams", "-1", #""name":7"#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","rank":"1""#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","rank":1.5"#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","home":1"#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","logo":"not base64""#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A","fee":1"#), "invalid"),
        (SetText().create("teams", "-1", #""name":"A\u0000""#), "invalid"),
        (SetText().create("teams", "-1", "\"name\":null"), "constraint"),
        (SetText().create("teams", "-1", #""rank":3"#), "constraint"),
        (SetText().create("teams", "-1", #""name":"A","rank":0"#), "constraint"),
        (SetText().create("teams", "-1", #""name":"A","parent_id":99"#), "constraint"),
        (SetText().create("teams", "-1", #""name":"A","parent_id":0"#), "constraint"),
        (SetText().create("teams", "-1", #""name":"A","parent_id":-99"#), "dependency"),
        (SetText().update("teams", "-99", #""name":"A","revision":1"#), "dependency"),
        (SetText().delete("teams", "-99"), "dependency"),
        (SetText().create("teams", "-1", #""name":"A""#).delete("teams", "-1"), "invalid"),
        (SetText().delete("teams", "1").delete("teams", "1"), "invalid"),
        (SetText(), "invalid"),
        (SetText(seen: -1).create("teams", "-1", #""name":"A""#), "invalid"),
    ]

    @Test(
        "each is refused with its reason and a sentence, and leaves nothing",
        arguments: StorageKind.all)
    func refusal(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        for (index, (set, fate)) in Self.refused.enumerated() {
            let good = SetText().create("teams", "-\(50 + index)", #""name":"Z\#(index)""#)
            let answer = try server.exchange([set, good])
            let refused = try #require(answer.changeSets.last)
            #expect(refused.fate == fate, "\(set)")
            #expect(refused.message?.isEmpty == false)
            let id = index + 1
            #expect(
                answer.changeSets.first?.content
                    == "teams create [\(id)] \(id)@\(id)(name=Z\(index) city=Rome)")
        }
        let count = "\(Self.refused.count)"
        #expect(try server.rows("SELECT count(*) FROM teams WHERE name LIKE 'Z%'") == count)
        #expect(try server.rows("SELECT count(*) FROM teams") == count)
        #expect(try server.rows("SELECT count(*) FROM notes") == "0")
    }

    @Test(
        "values come back as the database stored them, defaults and generated ones included",
        arguments: StorageKind.all)
    func stored(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        // PostgreSQL keeps a number's digits.
        server.isCompared = false
        let set = try server.send(
            SetText().create(
                "teams", "-1",
                #""name":"Ä","rank":9007199254740993,"home":true,"weight":2,"logo":"AAEC","fee":"1.50""#
            ))
        #expect(
            set.content == """
                teams create [1] 1@1(name=Ä rank=9007199254740993 home=true weight=2.0 logo=AAEC \
                fee=\(kind.isPostgres ? "1.50" : "1.5") city=Rome)
                """)
        let update = try server.send(SetText().update("teams", "1", #""revision":1,"name":"B""#))
        #expect(update.content == "teams update [1] 1@2(name=B)")
        let null = try server.send(
            SetText().create("teams", "-2", #""name":"N","city":null"#))
        #expect(null.content == "teams create [2] 2@3(name=N)")
    }

    @Test(
        "a set with a defect in its shape is refused alone, without a truth",
        arguments: StorageKind.all)
    func defect(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = try server.send(#"{"identifier":"i","sequence":1,"types":["teams"],"teams":7}"#)
        #expect(set.fate == "invalid")
        #expect(set.identifier == "i")
        #expect(set.types.isEmpty)
    }

    @Test(
        "references in circles and to oneself hold, whatever the order", arguments: StorageKind.all)
    func circles(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = try server.send(
            SetText().create("teams", "-1", #""name":"A","parent_id":-2"#)
                .create("teams", "-2", #""name":"B","parent_id":-1"#)
                .create("teams", "-3", #""name":"C","parent_id":-3"#))
        #expect(set.fate == "accepted 1")
        #expect(
            try server.rows("SELECT id, parent_id FROM teams ORDER BY id") == "1|2\n2|1\n3|3")
        #expect(set["teams"]?.entries.map(\.oldID) == [.integer(-1), .integer(-2), .integer(-3)])
    }

    @Test(
        "what a role may not do is refused alike, whether the record exists or not",
        arguments: StorageKind.all)
    func permission(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        server.rules = Rules(
            roles: ["coach": Rules.Grant(types: ["teams": [.create, .update]], others: [])],
            fallback: Rules.Grant())
        let coach = Principal(name: "c", user: "coach", roles: ["coach"])
        func send(_ set: SetText) throws -> ChangeSet {
            try server.send(set, from: "dc", as: coach)
        }
        #expect(try send(SetText().create("teams", "-1", #""name":"A""#)).fate == "accepted 1")
        let there = try send(SetText().delete("teams", "1", #""revision":1"#))
        let notThere = try send(SetText().delete("teams", "99", #""revision":1"#))
        #expect(there.fate == "permission")
        #expect(there.message == notThere.message)
        #expect(there.content == "teams update [1] 1@1(name=A city=Rome)")
        #expect(try send(SetText().create("notes", "n")).fate == "permission")
        #expect(try server.send(SetText().delete("teams", "1")).fate == "accepted 2")
    }
}
