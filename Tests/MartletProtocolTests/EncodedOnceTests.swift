import MartletModel
import Testing

@testable import MartletProtocol

@Suite("A change set whose attributes are encoded already")
struct EncodedOnceTests {
    @Test("has the same bytes as one that is encoded as a whole")
    func same() throws {
        var teams = TypeChanges(name: "teams", create: [.integer(-2)], delete: [.integer(4)])
        teams.entries = [
            RecordEntry(
                id: .integer(-2),
                attributes: Attributes(names: ["name", "é"], values: [.text("a\"b"), .null])),
            RecordEntry(id: .integer(4), revision: 9),
        ]
        var words = TypeChanges(name: "words", create: [.text("x")], update: [.text("\"")])
        words.entries = [
            RecordEntry(id: .text("x")),
            RecordEntry(
                id: .text("\""), revision: 7,
                attributes: Attributes(names: ["n"], values: [.real(1.5)])),
        ]
        var set = ChangeSet(types: [teams, words])
        set.sequence = 3
        let attributes = try set.types.flatMap(\.entries).map {
            $0.revision == 9 ? [] : try SyncCoder.encode($0.attributes)
        }
        var bare = set
        for type in bare.types.indices {
            for entry in bare.types[type].entries.indices {
                bare.types[type].entries[entry].attributes = Attributes()
            }
        }
        #expect(try SyncCoder.encode(bare, attributes: attributes) == SyncCoder.encode(set))
    }
}
