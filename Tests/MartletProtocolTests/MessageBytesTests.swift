import MartletModel
import MartletProtocol
import Testing

/// The exact bytes of every message. A change here is a change of the wire: see `WireVersion`.
@Suite("Message bytes")
struct MessageBytesTests {
    /// A change set with every member a device writes.
    static var ownSet: ChangeSet {
        var set = ChangeSet(types: [
            TypeChanges(
                name: "screens", create: [.integer(-10)], update: [.text("a-1")],
                delete: [.integer(7)],
                entries: [
                    RecordEntry(
                        id: .integer(-10),
                        attributes: Attributes(
                            names: ["title", "size", "share", "done", "note"],
                            values: [
                                .text("Ä \"1\"\n"), .integer(2), .real(2), .boolean(true), .null,
                            ])),
                    RecordEntry(
                        id: .text("a-1"), revision: 355,
                        attributes: Attributes(names: ["title"], values: [.text("")])),
                    RecordEntry(id: .integer(7), revision: 9),
                ]),
            TypeChanges(name: "empty"),
        ])
        set.identifier = "7f1e"
        set.sequence = 42
        set.seen = 998
        set.dependencyIdentifier = "1b22"
        set.timestamp = "2026-11-21T09:12:44.120Z"
        return set
    }

    static let ownSetText = #"""
        {"identifier":"7f1e","sequence":42,"seen":998,"dependencyIdentifier":"1b22",\#
        "timestamp":"2026-11-21T09:12:44.120Z","types":["screens","empty"],\#
        "screens":{"create":[-10],"update":["a-1"],"delete":[7],"attributes":{\#
        "-10":{"title":"Ä \"1\"\n","size":2,"share":2.0,"done":true,"note":null},\#
        "a-1":{"revision":355,"title":""},"7":{"revision":9}}},\#
        "empty":{"create":[],"update":[],"delete":[],"attributes":{}}}
        """#

    static var request: SyncRequest {
        var request = SyncRequest(maxRevision: 1000, changeSets: [ownSet, ChangeSet()])
        request.clientID = "0c9d"
        request.protocolVersion = 1
        request.acknowledged = 41
        request.dataSet = "d"
        request.lineage = "l"
        request.schema = "s"
        return request
    }

    @Test("a request for rows, and a difference, say so")
    func differences() throws {
        var request = SyncRequest(maxRevision: 3)
        request.wantsRows = true
        let asked = #"{"maxRevision":3,"rows":true,"changeSets":[]}"#
        #expect(String(decoding: try SyncCoder.encode(request), as: UTF8.self) == asked)
        #expect(try SyncCoder.decodeRequest(Array(asked.utf8)) == request)
        var set = ChangeSet(types: [])
        set.revision = 9
        set.isDifference = true
        let text = #"{"revision":9,"difference":true,"types":[]}"#
        #expect(String(decoding: try SyncCoder.encode(set), as: UTF8.self) == text)
        #expect(try SyncCoder.decodeChangeSet(Array(text.utf8)) == set)
    }

    static let requestHead = #"""
        {"clientId":"0c9d","protocol":1,"maxRevision":1000,"acknowledged":41,"dataSet":"d",\#
        "lineage":"l","schema":"s","changeSets":[
        """#

    @Test("a request")
    func request() throws {
        let bytes = [UInt8]((Self.requestHead + Self.ownSetText + #",{"types":[]}]}"#).utf8)
        #expect(try SyncCoder.encode(Self.request) == bytes)
        #expect(try SyncCoder.decodeRequest(bytes) == Self.request)
    }

    @Test("a request with nothing but what is required")
    func leastRequest() throws {
        let bytes = [UInt8](#"{"maxRevision":0,"changeSets":[]}"#.utf8)
        #expect(try SyncCoder.encode(SyncRequest(maxRevision: 0)) == bytes)
        #expect(try SyncCoder.decodeRequest(bytes) == SyncRequest(maxRevision: 0))
    }

    @Test("an answer with an own set, a missed one and a refused one")
    func answer() throws {
        var own = ChangeSet(types: [
            TypeChanges(
                name: "screens", create: [.integer(321)],
                entries: [
                    RecordEntry(
                        id: .integer(321), revision: 1001, oldID: .integer(-10),
                        attributes: Attributes(names: ["n"], values: [.integer(1)]))
                ])
        ])
        own.identifier = "7f1e"
        own.sequence = 42
        own.revision = 1001
        own.conflict = false
        var refused = ChangeSet(types: [TypeChanges(name: "screens", delete: [.integer(-4)])])
        refused.identifier = "7f20"
        refused.sequence = 43
        refused.conflict = true
        refused.reason = .busy
        refused.message = "The record is locked; send the set again."
        refused.retryAfter = 5
        var answer = SyncAnswer(maxRevision: 1001, more: true, changeSets: [own, refused])
        answer.dataSet = "d"
        answer.lineage = "l"
        answer.schema = "s"
        let text = #"""
            {"maxRevision":1001,"more":true,"dataSet":"d","lineage":"l","schema":"s",\#
            "changeSets":[{"identifier":"7f1e","sequence":42,"revision":1001,"conflict":false,\#
            "types":["screens"],"screens":{"create":[321],"update":[],"delete":[],\#
            "attributes":{"321":{"__oldId__":-10,"revision":1001,"n":1}}}},\#
            {"identifier":"7f20","sequence":43,"conflict":true,"reason":"busy",\#
            "message":"The record is locked; send the set again.","retryAfter":5,\#
            "types":["screens"],"screens":{"create":[],"update":[],"delete":[-4],\#
            "attributes":{}}}]}
            """#
        #expect(try String(decoding: SyncCoder.encode(answer), as: UTF8.self) == text)
        #expect(try SyncCoder.decodeAnswer([UInt8](text.utf8)) == answer)
    }

    @Test("heads, encoded sets and the tail join to the whole message")
    func assembly() throws {
        let sets = try Self.request.changeSets.map { set in try SyncCoder.encode(set) }
        let body = Array(sets.joined(separator: [UInt8(ascii: ",")]))
        #expect(
            try SyncCoder.requestHead(Self.request) + body + SyncCoder.tail
                == SyncCoder.encode(Self.request))
        let answer = SyncAnswer(maxRevision: 3, changeSets: Self.request.changeSets)
        #expect(
            try SyncCoder.answerHead(answer) + body + SyncCoder.tail
                == SyncCoder.encode(answer))
    }

    @Test("the source of a change set is where its bytes stand")
    func source() throws {
        let first = #"{ "types" : [] }"#
        let bytes = [UInt8](
            (#"{"maxRevision":0,"changeSets":[ "# + first + " , " + Self.ownSetText + " ]}").utf8)
        let sets = try SyncCoder.decodeRequest(bytes).changeSets
        let sources = sets.map {
            String(decoding: bytes[$0.source.start..<$0.source.end], as: UTF8.self)
        }
        #expect(sources == [first, Self.ownSetText])
    }

    @Test("attributes alone, where no name is special")
    func attributes() throws {
        let attributes = Attributes(
            names: ["revision", "b", "c"], values: [.integer(1), .real(1e300), .text("\u{1}")])
        let bytes = [UInt8](#"{"revision":1,"b":1e+300,"c":"\u0001"}"#.utf8)
        #expect(try SyncCoder.encode(attributes) == bytes)
        #expect(try SyncCoder.decodeAttributes(bytes) == attributes)
        #expect(try SyncCoder.decodeAttributes([UInt8]("{}".utf8)) == Attributes())
    }

    @Test("a problem")
    func problem() {
        let problem = Problem(
            status: 429, kind: "tooManyConnections", detail: "Too many requests.", retryAfter: 3)
        let bytes = [UInt8](
            #"""
            {"type":"about:blank","status":429,\#
            "kind":"tooManyConnections","detail":"Too many requests.","retryAfter":3}
            """#.utf8)
        #expect(SyncCoder.encode(problem) == bytes)
        #expect(SyncCoder.decodeProblem(bytes, status: 429) == problem)
    }
}
