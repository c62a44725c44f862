import Foundation
import MartletModel
import MartletProtocol
import Testing

/// The article's examples, literal in names and values.
@Suite("The article's examples")
struct ArticleTests {
    @Test("the update of record 1013, based on revision 355")
    func updateOfArticleRead() throws {
        let request = try SyncCoder.decodeRequest(Fixture.bytes("simple-request"))
        let expected = SyncRequest(
            maxRevision: 17382,
            changeSets: [
                ChangeSet(types: [
                    TypeChanges(
                        name: "users", update: [.integer(1013)],
                        entries: [
                            RecordEntry(
                                id: .integer(1013), revision: 355,
                                attributes: Attributes(
                                    names: ["first_name", "last_name", "date_of_birth"],
                                    values: [
                                        .text("Florian"), .text("Kugler"),
                                        .text("1979-09-12 00:00:00.000+00"),
                                    ]))
                        ])
                ])
            ])
        #expect(request == expected)
    }

    @Test("three created records with temporary ids that refer to each other")
    func create() throws {
        let request = try SyncCoder.decodeRequest(Fixture.bytes("request"))
        #expect(request.maxRevision == 1000)
        let set = try #require(request.changeSets.first)
        #expect(set.types.map(\.name) == ["screen_instances", "screen_instance_items"])
        #expect(set.types.map(\.create) == [[.integer(-10)], [.integer(-11), .integer(-12)]])
        #expect(set.types.allSatisfy { $0.create.allSatisfy(\.isTemporary) })
        let instance = try #require(set.types[0].entries.first)
        #expect(instance.attributes.names == ["screen_id", "date", "comment"])
        #expect(instance.attributes["date"] == .text("2014-02-01 13:15:23.487+01"))
        #expect(instance.attributes["comment"] == .text(""))
        #expect(instance.revision == nil)
        let items = set.types[1].entries
        #expect(
            items.map { $0.attributes["screen_instance_id"] } == [.integer(-10), .integer(-10)])
        #expect(set.recordCount == 3)
    }

    @Test("their answer, with permanent ids, old ids and the revision")
    func answer() throws {
        let answer = try SyncCoder.decodeAnswer(Fixture.bytes("answer"))
        #expect(answer.maxRevision == 1001)
        #expect(!answer.more)
        let set = try #require(answer.changeSets.first)
        #expect(set.conflict == false)
        let entries = set.types.flatMap(\.entries)
        #expect(entries.map(\.id) == [.integer(321), .integer(412), .integer(413)])
        #expect(entries.map(\.oldID) == [.integer(-10), .integer(-11), .integer(-12)])
        #expect(entries.map(\.revision) == [1001, 1001, 1001])
        #expect(entries[2].attributes["screen_instance_id"] == .integer(321))
    }

    @Test("the answer to a device that was at revision 995")
    func behindAtRevision995() throws {
        let answer = try SyncCoder.decodeAnswer(Fixture.bytes("answer-behind"))
        #expect(answer.changeSets.count == 6)
        #expect(
            answer.changeSets.last
                == (try SyncCoder.decodeAnswer(Fixture.bytes("answer")))
                .changeSets.first)
        #expect(answer.changeSets[2].types[0].delete == [.integer(2204)])
        #expect(answer.changeSets[3].types[0].entries[0].attributes["weight"] == .real(0.75))
        #expect(answer.changeSets[4].types[0].entries[0].attributes["last_name"] == .null)
    }

    @Test("a refused delete comes back with the record and the one it cascaded to")
    func refusedCascade() throws {
        let answer = try SyncCoder.decodeAnswer(Fixture.bytes("answer-refused"))
        let set = try #require(answer.changeSets.first)
        #expect(set.conflict == true)
        #expect(set.types.map(\.update) == [[.integer(321)], [.integer(412)]])
    }

    @Test(
        "written again, they are the same documents",
        arguments: ["simple-request", "request", "answer", "answer-behind", "answer-refused"])
    func rewrite(name: String) throws {
        let bytes = try Fixture.bytes(name)
        let written =
            name.hasSuffix("request")
            ? try SyncCoder.encode(SyncCoder.decodeRequest(bytes))
            : try SyncCoder.encode(SyncCoder.decodeAnswer(bytes))
        #expect(
            try JSONDecoder().decode(Tree.self, from: Data(written))
                == JSONDecoder().decode(Tree.self, from: Data(bytes)))
    }
}
