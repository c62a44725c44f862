import MartletModel
import Testing

@testable import MartletProtocol

@Suite("Deltas")
struct DeltaTests {
    static let batch = DeltaBatch(
        from: 6,
        deltas: [
            Delta(
                version: 7, seconds: 1_700_000_000, type: "teams", id: "4", operation: .upsert,
                payload: #"{"name":"Ea\"gles"}"#, isNew: true, identifier: "s1", oldID: -3),
            Delta(
                version: 8, seconds: 1_700_000_001, type: "notes", id: "n-1", operation: .upsert,
                payload: #"{"body":null}"#, recordRevision: 5),
            Delta(
                version: 8, seconds: 1_700_000_001, type: "teams", id: "2", operation: .delete),
        ], nextVersion: 8, dataSet: "d", lineage: "h", more: true)

    static let text =
        #"{"from":6,"dataSet":"d","lineage":"h","more":true,"deltas":["#
        + #"{"v":7,"t":1700000000,"e":"teams","eid":"4","op":"upsert","#
        + #""p":"{\"name\":\"Ea\\\"gles\"}","new":true,"set":"s1","old":-3},"#
        + #"{"v":8,"t":1700000001,"e":"notes","eid":"n-1","op":"upsert","p":"{\"body\":null}","r":5},"#
        + #"{"v":8,"t":1700000001,"e":"teams","eid":"2","op":"delete"}],"nextVersion":8}"#

    @Test("are written byte for byte, and read back")
    func bytesOfDeltas() throws {
        #expect(String(decoding: SyncCoder.encode(Self.batch), as: UTF8.self) == Self.text)
        #expect(try SyncCoder.decodeDeltaBatch(Array(Self.text.utf8)) == Self.batch)
    }

    @Test("a difference says that it is one")
    func differenceOnTheWire() throws {
        var batch = DeltaBatch(from: 2, deltas: [], nextVersion: 9)
        batch.isDifference = true
        let text = #"{"from":2,"difference":true,"deltas":[],"nextVersion":9}"#
        #expect(String(decoding: SyncCoder.encode(batch), as: UTF8.self) == text)
        #expect(try SyncCoder.decodeDeltaBatch(Array(text.utf8)) == batch)
    }

    @Test("the bare form of the article is read: v, t, e, eid, op, p, and nextVersion")
    func bare() throws {
        let text = """
            {"deltas": [{"v": 3, "t": 9, "e": "user", "eid": "u1", "op": "upsert", "p": "{}"},
                        {"v": 4, "t": 9, "e": "user", "eid": "u1", "op": "delete", "p": null,
                         "later": [1]}],
             "nextVersion": 4, "later": {"a": 1}}
            """
        let batch = try SyncCoder.decodeDeltaBatch(Array(text.utf8))
        #expect(batch.from == nil)
        #expect(batch.deltas.map(\.version) == [3, 4])
        #expect(batch.deltas.map(\.operation) == [.upsert, .delete])
        #expect(batch.deltas[1].payload == nil)
    }

    @Test(
        "what contradicts itself is refused",
        arguments: [
            #"{"deltas":[]}"#, #"{"nextVersion":1}"#, #"[]"#, #"{"deltas":{},"nextVersion":1}"#,
            #"{"from":3,"deltas":[],"nextVersion":2}"#,
            #"{"deltas":[{"v":5,"t":1,"e":"a","eid":"1","op":"delete"}],"nextVersion":4}"#,
            #"{"from":5,"deltas":[{"v":5,"t":1,"e":"a","eid":"1","op":"delete"}],"nextVersion":6}"#,
            #"{"deltas":[{"v":2,"t":1,"e":"a","eid":"1","op":"delete"},"#
                + #"{"v":1,"t":1,"e":"a","eid":"1","op":"delete"}],"nextVersion":2}"#,
            #"{"deltas":[{"v":1,"t":1,"e":"a","eid":"1","op":"upsert"}],"nextVersion":1}"#,
            #"{"deltas":[{"v":1,"t":1,"e":"a","eid":"1","op":"drop"}],"nextVersion":1}"#,
            #"{"deltas":[{"v":1,"t":1,"eid":"1","op":"delete"}],"nextVersion":1}"#,
            #"{"deltas":[{"v":-1,"t":1,"e":"a","eid":"1","op":"delete"}],"nextVersion":1}"#,
            #"{"deltas":[{"v":1,"v":1,"t":1,"e":"a","eid":"1","op":"delete"}],"nextVersion":1}"#,
            #"{"deltas":[],"nextVersion":1} x"#,
        ])
    func refusedContradiction(text: String) {
        #expect(throws: WireFault.self) {
            try SyncCoder.decodeDeltaBatch(Array(text.utf8))
        }
    }

    @Test("a change set becomes its deltas: changed records type by type, then what is gone")
    func list() throws {
        var teams = TypeChanges(name: "teams", create: [.integer(1)], update: [.integer(2)])
        teams.delete = [.integer(3)]
        teams.entries = [
            RecordEntry(
                id: .integer(1), oldID: .integer(-1),
                attributes: Attributes(names: ["name"], values: ["A"])),
            RecordEntry(
                id: .integer(2), revision: 4, attributes: Attributes(names: ["name"], values: ["B"])
            ),
            RecordEntry(id: .integer(3), revision: 2),
        ]
        let notes = TypeChanges(
            name: "notes", create: [.text("x")],
            entries: [
                RecordEntry(
                    id: .text("x"), revision: 9,
                    attributes: Attributes(names: ["team"], values: [1]))
            ])
        let deltas: [Delta] = try Delta.list(
            of: ChangeSet(types: [teams, notes]), revision: 9, seconds: 5)
        #expect(deltas.map(\.id) == ["1", "2", "x", "3"])
        #expect(deltas.map(\.isNew) == [true, false, true, false])
        #expect(deltas.map(\.oldID) == [-1, nil, nil, nil])
        #expect(deltas.map(\.recordRevision) == [nil, 4, nil, nil])
        #expect(deltas.last?.operation == .delete)
        #expect(deltas[2].payload == #"{"team":1}"#)
    }
}
