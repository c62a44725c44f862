import MartletModel
import MartletRules
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// The rows that a refused set would leave if no record had its unique values and all referenced ids
/// existed, for a judgement by policies.
///
/// Each row is written alone, in place of the rows with the same unique values, then read and taken
/// back. If the table does not take it even so, the row is the one that the set's values make.
struct SetTrial {
    /// The ids that the set's new records would get.
    private(set) var assigned: [RecordAddress: RecordID] = [:]
    private(set) var rows: [RecordAddress: RuleRow] = [:]

    init(session: EmbeddedSession, work: SetWork, rights: SetRights) throws(SQLiteError) {
        for create in work.plan.creates where create.id.isTemporary {
            guard let id = try session.nextID(of: create.type) else { continue }
            assigned[create.address] = .integer(id)
        }
        var tables: [Int: RecordTable] = [:]
        func table(_ type: Int) -> RecordTable {
            if let table = tables[type] { return table }
            let table = RecordTable(
                type: session.schema.types[type], connection: session.connection, replaces: true)
            tables[type] = table
            return table
        }
        for create in work.plan.creates {
            let address = RecordAddress(create.type, assigned[create.address] ?? create.id)
            let values = session.resolved(create, assigned: assigned, work.facts)
            let row = try Self.row(address, session) { () throws(SQLiteError) in
                try table(create.type).insert(address.id, values, absentMeansNull: false)
            }
            rows[address] = row ?? rights.expectedRow(address, values)
        }
        for update in work.plan.updates {
            let address = work.facts.permanentAddress(of: update.address)
            let values = session.resolved(update, assigned: assigned, work.facts)
            let row = try Self.row(address, session) { () throws(SQLiteError) in
                _ = try table(update.type).update(address.id, values)
            }
            rows[address] = row ?? rights.expectedRow(address, values)
        }
    }

    /// Returns a row once it is written; nil if it cannot be. The change is undone.
    private static func row(
        _ address: RecordAddress, _ session: EmbeddedSession,
        writtenBy write: () throws(SQLiteError) -> Void
    ) throws(SQLiteError) -> RuleRow? {
        try session.connection.run("SAVEPOINT martlet_trial")
        let result = Result { () throws(SQLiteError) -> RuleRow? in
            try write()
            return try session.ruleRows(
                of: address.type, where: 0, isAmong: [address.id.value]
            ).first { RecordAddress(address.type, $0) == address }
        }
        if session.connection.isInTransaction {
            try session.connection.run("ROLLBACK TO martlet_trial")
            try session.connection.run("RELEASE martlet_trial")
            if case .failure(let error) = result, EmbeddedSession.isOfTheSet(error),
                !error.isInterrupted
            {
                return nil
            }
        }
        return try result.get()
    }
}
