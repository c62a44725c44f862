import MartletCore
import MartletProtocol
import SQLiteKit
import SQLiteRecords

/// Moves unique values out of the way, so that a set may swap them between records, or delete a
/// record and create another with the same value.
///
/// SQLite checks UNIQUE after each row, so the order of the statements decides whether such a set
/// passes; parked, no value meets another before the end. Of each list of unique columns one is
/// parked: as NULL where the column allows it, else as a value no one has. Every parked value is
/// written again by the set, or goes with its record.
struct ValueParking {
    let session: EmbeddedSession
    let plan: SetPlan
    let facts: SetFacts

    func park() throws(SQLiteError) {
        var number: Int64 = 0
        for change in plan.updates {
            let type = session.schema.types[change.type]
            for unique in type.uniques {
                let written = unique.filter { change.attributes[$0] != nil }
                try park(change, written, in: type, &number)
            }
        }
        for change in plan.deletes {
            let type = session.schema.types[change.type]
            for unique in type.uniques { try park(change, unique, in: type, &number) }
        }
    }

    private func park(
        _ change: SetPlan.Change, _ columns: [String], in type: EntityType, _ number: inout Int64
    ) throws(SQLiteError) {
        let candidates = columns.compactMap { type[attribute: $0] }.filter { !$0.isGenerated }
        let chosen = candidates.first { !$0.isRequired } ?? candidates.first
        guard let chosen else { return }
        number += 1
        let value: Value = chosen.isRequired ? parked(chosen.kind, number) : .null
        _ = try session.tables[change.type].update(
            facts.permanentAddress(of: change.address).id,
            Attributes(names: [chosen.name], values: [value]))
    }

    private func parked(_ kind: AttributeKind, _ number: Int64) -> Value {
        switch kind {
        case .integer, .boolean: .integer(Int64.min / 2 + number)
        case .real: .real(-1e300 - Double(number) * 1e285)
        case .text, .any, .blob, .numeric: .text("\u{1}martlet parked \(number)")
        }
    }
}
