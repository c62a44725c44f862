import MartletModel
import MartletProtocol
import Testing

@Suite("Checks on the wire")
struct CheckTests {
    static var request: SyncRequest {
        var request = SyncRequest(maxRevision: 9)
        request.check = CheckRequest(
            revision: 8,
            types: [
                CheckedType(
                    name: "teams",
                    attributes: [
                        CheckedAttribute(name: "name", kind: "text"),
                        CheckedAttribute(name: "wins", kind: "integer"),
                    ],
                    ranges: [
                        CheckedRange(below: .integer(-3), hash: RangeHash()),
                        CheckedRange(
                            from: .integer(4), below: .integer(9),
                            hash: RangeHash(count: 5, sum: .max)),
                        CheckedRange(from: .integer(9), hash: RangeHash(count: 1, sum: 255)),
                    ]),
                CheckedType(name: "notes", attributes: []),
            ])
        return request
    }

    static let requestText = #"""
        {"maxRevision":9,"check":{"revision":8,"types":[{"type":"teams","attributes":{\#
        "name":"text","wins":"integer"},"ranges":[[null,-3,0,"0000000000000000"],\#
        [4,9,5,"ffffffffffffffff"],[9,null,1,"00000000000000ff"]]},\#
        {"type":"notes","attributes":{},"ranges":[]}]},"changeSets":[]}
        """#

    static var answer: SyncAnswer {
        var answer = SyncAnswer(maxRevision: 9)
        let row = RecordEntry(
            id: .integer(7), revision: 3,
            attributes: Attributes(names: ["name", "revision"], values: ["x", .null]))
        answer.check = CheckAnswer(
            revision: 10,
            types: [
                TypeVerdict(
                    name: "teams",
                    ranges: [
                        .equal, .hash(RangeHash(count: 2, sum: 16), without: [.integer(5)]),
                        .hash(RangeHash(), without: []),
                        .rows(
                            CheckedRows(rows: [row], next: .integer(8), without: [.integer(6)])),
                        .rows(CheckedRows(rows: [])),
                    ]),
                TypeVerdict(name: "notes", isUnknown: true),
                TypeVerdict(name: "more", unknownAttributes: ["a"]),
            ])
        return answer
    }

    static let answerText = #"""
        {"maxRevision":9,"check":{"revision":10,"types":[{"type":"teams","ranges":[true,\#
        {"hash":[2,"0000000000000010"],"without":[5]},{"hash":[0,"0000000000000000"]},\#
        {"rows":[[7,3,{"name":"x","revision":null}]],"next":8,"without":[6]},{"rows":[]}]},\#
        {"type":"notes","unknown":true,"ranges":[]},\#
        {"type":"more","unknownAttributes":["a"],"ranges":[]}]},"changeSets":[]}
        """#

    @Test("a request's check")
    func requests() throws {
        let bytes = try SyncCoder.encode(Self.request)
        #expect(String(decoding: bytes, as: UTF8.self) == Self.requestText)
        #expect(try SyncCoder.decodeRequest(bytes) == Self.request)
    }

    @Test("an answer's check")
    func answersCheck() throws {
        let bytes = try SyncCoder.encode(Self.answer)
        #expect(String(decoding: bytes, as: UTF8.self) == Self.answerText)
        #expect(try SyncCoder.decodeAnswer(bytes) == Self.answer)
    }

    @Test("a device that is too far behind is told")
    func behindTooFar() throws {
        let text = #"{"maxRevision":9,"check":{"revision":9,"behind":true,"types":[]},"#
        let answer = try SyncCoder.decodeAnswer(Array((text + #""changeSets":[]}"#).utf8))
        #expect(answer.check == CheckAnswer(revision: 9, isBehind: true))
    }

    private static let zero = #""0000000000000000""#

    @Test(
        "what is no check is refused",
        arguments: [
            #"{"types":[]}"#, #"{"revision":1}"#, #"{"revision":-1,"types":[]}"#, "[]", "null",
            #"{"revision":1,"types":[{}]}"#, #"{"revision":1,"types":[{"type":""}]}"#,
            #"{"revision":1,"types":[{"type":"t"},{"type":"t"}]}"#,
            #"{"revision":1,"types":[{"type":"t","attributes":{"a":"text","a":"text"}}]}"#,
            #"{"revision":1,"types":[{"type":"t","attributes":{"a":1}}]}"#,
        ])
    func shapes(check: String) {
        refuse(check)
    }

    @Test(
        "ranges that are none, reversed, or overlap are refused",
        arguments: [
            "[]", "[null,null,1]", "[null,null,-1,\(zero)]", "[null,null,1,\"00\"]",
            "[null,null,1,\"000000000000000g\"]", "[null,null,1,\"+000000000000000\"]",
            "[null,null,1,\(zero),1]", "[5,5,1,\(zero)]", "[5,4,1,\(zero)]",
            "[\"b\",\"a\",1,\(zero)]", "[5,\"a\",1,\(zero)]",
            "[null,null,1,\(zero)],[5,6,1,\(zero)]", "[null,5,1,\(zero)],[null,6,1,\(zero)]",
            "[null,5,1,\(zero)],[4,6,1,\(zero)]", "[null,5,1,\(zero)],[\"a\",null,1,\(zero)]",
            "[1.5,null,1,\(zero)]",
        ])
    func ranges(text: String) {
        refuse(#"{"revision":1,"types":[{"type":"t","ranges":["# + text + "]}]}")
    }

    @Test("more ranges than a check may have are refused, over all types")
    func tooMany() throws {
        var request = SyncRequest(maxRevision: 1)
        func type(_ name: String, _ count: Int) -> CheckedType {
            CheckedType(
                name: name, attributes: [],
                ranges: (1...count).map {
                    CheckedRange(
                        from: .integer(Int64($0)), below: .integer(Int64($0 + 1)),
                        hash: RangeHash())
                })
        }
        request.check = CheckRequest(
            revision: 1, types: [type("a", Limits.checkRanges - 1), type("b", 1)])
        #expect(try SyncCoder.decodeRequest(SyncCoder.encode(request)) == request)
        request.check?.types[1] = type("b", 2)
        let bytes = try SyncCoder.encode(request)
        #expect(throws: WireFault.self) { try SyncCoder.decodeRequest(bytes) }
    }

    private func refuse(_ check: String) {
        let body = #"{"maxRevision":1,"changeSets":[],"check":"# + check + "}"
        #expect(throws: WireFault.self) { try SyncCoder.decodeRequest(Array(body.utf8)) }
    }
}
