import Foundation
import MartletModel
import MartletStore
import Testing

@Suite("Ids as properties")
struct RecordIDCodingTests {
    private struct Player: Codable, Equatable, ReadableRecord {
        var id: RecordID?
        var team: RecordID
        var tags: [RecordID]
    }

    @Test("an id is a number or a text in JSON, and comes back as what it was")
    func jsonOfIDs() throws {
        let ids: [RecordID] = [.integer(-7), .integer(.max), .text("7"), .text("é")]
        let data = try JSONEncoder().encode(ids)
        #expect(String(decoding: data, as: UTF8.self) == #"[-7,9223372036854775807,"7","é"]"#)
        #expect(try JSONDecoder().decode([RecordID].self, from: data) == ids)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([RecordID].self, from: Data("[true]".utf8))
        }
    }

    @Test("a record's ids are stored as SQLite holds them; within a list they are JSON")
    func columnsOfIDs() throws {
        let player = Player(id: nil, team: .integer(3), tags: [.integer(1), .text("x")])
        let values = try player.dictionaryRepresentation(columns: .all, table: "")
        #expect(values == ["id": .null, "team": 3, "tags": #"[1,"x"]"#])
        var filled = Player(id: .text("a"), team: .integer(0), tags: [])
        try filled.fill(from: ["id": "b", "team": -4, "tags": #"["y"]"#])
        #expect(filled == Player(id: .text("b"), team: .integer(-4), tags: [.text("y")]))
    }
}
