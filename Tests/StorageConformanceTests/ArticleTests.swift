import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("The article's examples")
struct ArticleTests {
    static let schema = """
        CREATE TABLE users (
            id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, date_of_birth TEXT);
        CREATE TABLE screens (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE screen_instances (
            id INTEGER PRIMARY KEY, screen_id INTEGER REFERENCES screens (id), date TEXT,
            comment TEXT);
        CREATE TABLE screen_instance_items (
            id INTEGER PRIMARY KEY,
            screen_instance_id INTEGER REFERENCES screen_instances (id) ON DELETE CASCADE,
            numeric_value INTEGER);
        """

    static let request = """
        {"maxRevision":MAX,"changeSets":[{"types":["screen_instances","screen_instance_items"],\
        "screen_instances":{"create":[-10],"update":[],"delete":[],"attributes":{"-10":{\
        "screen_id":749,"date":"2014-02-01 13:15:23.487+01","comment":""}}},\
        "screen_instance_items":{"create":[-11,-12],"update":[],"delete":[],"attributes":{\
        "-11":{"screen_instance_id":-10,"numeric_value":2},\
        "-12":{"screen_instance_id":-10,"numeric_value":3}}}}]}
        """

    static let accepted = """
        {"revision":1001,"conflict":false,"types":["screen_instances","screen_instance_items"],\
        "screen_instances":{"create":[321],"update":[],"delete":[],"attributes":{"321":{\
        "__oldId__":-10,"revision":1001,"screen_id":749,"date":"2014-02-01 13:15:23.487+01",\
        "comment":""}}},"screen_instance_items":{"create":[412,413],"update":[],"delete":[],\
        "attributes":{"412":{"__oldId__":-11,"revision":1001,"screen_instance_id":321,\
        "numeric_value":2},"413":{"__oldId__":-12,"revision":1001,"screen_instance_id":321,\
        "numeric_value":3}}}}
        """

    /// A data set at revision 1000 whose next ids are the article's.
    static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(
            kind, schema, rows: "INSERT INTO screens VALUES (749, 'Agility');")
        func fill(_ revisions: ClosedRange<Int>) throws {
            _ = try server.exchange(
                revisions.map {
                    SetText().create("users", "-\($0)", #""first_name":"user \#($0)""#)
                })
        }
        try fill(2...354)
        try server.setNextID(1013, of: "users")
        try fill(355...1000)
        try server.setNextID(321, of: "screen_instances")
        try server.setNextID(412, of: "screen_instance_items")
        return server
    }

    @Test(
        "new records get permanent ids, and the references to them follow",
        arguments: StorageKind.all)
    func creates(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let text = try server.text(
            Self.request.replacing("MAX", with: "1000"))
        #expect(text == "{\"maxRevision\":1001,\"changeSets\":[\(Self.accepted)]}")
    }

    @Test("a device at 995 receives 996 to 1000, then its own", arguments: StorageKind.all)
    func behindAt995ByEntries(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let answer = try server.answer(Self.request.replacing("MAX", with: "995"))
        #expect(answer.maxRevision == 1001)
        #expect(answer.changeSets.map(\.revision) == [996, 997, 998, 999, 1000, 1001])
        #expect(answer.changeSets.map(\.conflict) == [nil, nil, nil, nil, nil, false])
        let bytes = try SyncCoder.encode(answer.changeSets[5])
        #expect(String(decoding: bytes, as: UTF8.self) == Self.accepted)
    }

    @Test(
        "record 1013 at revision 355 is updated, its date kept as it was written",
        arguments: StorageKind.all)
    func updateOfArticle(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let text = try server.text(
            """
            {"maxRevision":1000,"changeSets":[{"types":["users"],"users":{"create":[],\
            "update":[1013],"delete":[],"attributes":{"1013":{"first_name":"Florian",\
            "last_name":"Kugler","date_of_birth":"1979-09-12 00:00:00.000+00","revision":355}}}}]}
            """)
        #expect(
            text == """
                {"maxRevision":1001,"changeSets":[{"revision":1001,"conflict":false,\
                "types":["users"],"users":{"create":[],"update":[1013],"delete":[],\
                "attributes":{"1013":{"revision":1001,"first_name":"Florian",\
                "last_name":"Kugler","date_of_birth":"1979-09-12 00:00:00.000+00"}}}}]}
                """)
    }
}
