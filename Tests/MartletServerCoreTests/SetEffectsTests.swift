import MartletModel
internal import MartletProtocol
import Testing

@testable import MartletServerCore

@Suite("What became of a set's records")
struct SetEffectsTests {
    private static let type = EntityType(
        name: "teams", key: "id", keyKind: .integer,
        attributes: [
            Attribute(name: "name", kind: .text),
            Attribute(name: "label", kind: .text, isGenerated: true),
        ])
    private let columns = TypeColumns(type, schema: Schema(types: [type]))
    private let address = RecordAddress(0, .integer(7))
    private let known = RowFacts(revision: 3, author: 1, others: 0)

    private func update(
        _ account: inout SetEffects, _ names: [String]?, _ facts: RowFacts?, row: Attributes?
    ) -> SetEffects.Updated {
        account.update(address, listing: names, facts: facts, of: columns) { _ in row }
    }

    @Test("a row that is not there and never was, or was deleted before, is nobody's news")
    func neverThere() {
        var account = SetEffects(types: [0])
        let gone = RowFacts(revision: 3, author: 1, others: 0, isDeleted: true)
        for facts in [nil, gone] {
            guard case .noted = update(&account, nil, facts, row: nil) else {
                Issue.record("it is told")
                return
            }
        }
        #expect(account[address]?.deed == nil)
        guard case .deleted = update(&account, nil, known, row: nil) else {
            Issue.record("a deletion is not told")
            return
        }
        #expect(account[address]?.deed == .deleted)
    }

    @Test("a removal that did not come about is no news")
    func notRemoved() {
        var account = SetEffects(types: [0])
        guard case .noted = update(&account, [], known, row: Attributes()) else {
            Issue.record("it is told")
            return
        }
        #expect(account[address]?.deed == nil)
    }

    @Test("an attribute whose row has no value for it is told as null")
    func absentValueIsNull() {
        var account = SetEffects(types: [0])
        let row = Attributes(names: ["name"], values: ["A"])
        guard case .changed(isNew: false) = update(&account, ["name"], known, row: row) else {
            Issue.record("a change is not told")
            return
        }
        #expect(
            account[address]?.attributes
                == Attributes(names: ["name", "label"], values: ["A", .null]))
    }
}

@Suite("Rows without their nulls")
struct TypeColumnsTests {
    private func row(_ values: [Value]) -> Attributes {
        Attributes(names: values.indices.map { "c\($0)" }, values: values)
    }

    @Test("keep each value under its name, however many columns there are", arguments: [3, 64, 70])
    func width(count: Int) {
        let attributes = (0..<count).map { Attribute(name: "c\($0)", kind: .integer) }
        let type = EntityType(
            name: "wide", key: "id", keyKind: .integer, attributes: attributes)
        let columns = TypeColumns(type, schema: Schema(types: [type]))
        var values = [Value](repeating: .null, count: count)
        values[0] = 1
        values[count - 1] = 2
        #expect(
            columns.withoutNulls(row(values))
                == Attributes(names: ["c0", "c\(count - 1)"], values: [1, 2]))
        let full = row([Value](repeating: 5, count: count))
        #expect(columns.withoutNulls(full) == full)
    }

    @Test("stay right when more kinds of rows have come than are kept in mind")
    func manyKinds() {
        let attributes = (0..<10).map { Attribute(name: "c\($0)", kind: .integer) }
        let type = EntityType(
            name: "many", key: "id", keyKind: .integer, attributes: attributes)
        let columns = TypeColumns(type, schema: Schema(types: [type]))
        for round in 0..<2 {
            for mask in 0..<600 {
                let values = (0..<10).map { bit -> Value in
                    mask & 1 << bit != 0 ? .integer(Int64(bit + round)) : .null
                }
                let kept = (0..<10).filter { mask & 1 << $0 != 0 }
                #expect(
                    columns.withoutNulls(row(values))
                        == Attributes(
                            names: kept.map { "c\($0)" },
                            values: kept.map { .integer(Int64($0 + round)) }))
            }
        }
    }
}

@Suite("Truths being gathered")
struct GatheredTruthTests {
    private static let schema = Schema(types: [
        EntityType(name: "teams", key: "id", keyKind: .integer, attributes: [])
    ])

    private func truth(room: Int, _ records: [(Int64, TrueRecord)]) -> SetTruth {
        var truth = GatheredTruth(room: room)
        let columns = TypeColumns(Self.schema.types[0], schema: Self.schema)
        for (id, record) in records {
            truth.add(
                record, at: RecordAddress(0, .integer(id)), sent: .integer(id),
                withoutNulls: columns)
        }
        return truth.truth(Self.schema)
    }

    @Test("a record is told once, and one that has no room is left out and said to be")
    func onceToldTruth() {
        let there = TrueRecord.present(Attributes(), revision: 1)
        let records: [(Int64, TrueRecord)] = [
            (7, .absent), (7, .absent), (8, there), (9, there),
        ]
        let whole = truth(room: 1_000, records)
        #expect(!whole.isCut)
        #expect(whole.types.map(\.delete) == [[.integer(7)]])
        #expect(whole.types.map(\.update) == [[.integer(8), .integer(9)]])
        #expect(truth(room: whole.byteCount, records).types == whole.types)
        let cut = truth(room: whole.byteCount - 1, records)
        #expect(cut.isCut)
        #expect(cut.types.map(\.update) == [[.integer(8)]])
    }

    @Test("the first record always has room")
    func first() {
        let there = TrueRecord.present(Attributes(), revision: 1)
        #expect(truth(room: 0, [(8, there)]).types.map(\.update) == [[.integer(8)]])
        #expect(!truth(room: 0, [(8, there)]).isCut)
        #expect(truth(room: 0, [(8, there), (9, .absent)]).isCut)
    }

    @Test("of a row that cannot be sent nothing is said")
    func unsendableRowOfTruth() {
        let truth = truth(room: 1_000, [(7, .unsendable), (8, .absent)])
        #expect(!truth.isCut)
        #expect(truth.types.map(\.delete) == [[.integer(8)]])
    }
}
