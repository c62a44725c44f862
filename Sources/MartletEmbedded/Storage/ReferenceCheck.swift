import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Words the refusal for a foreign key that does not hold. SQLite only says that there is one.
struct ReferenceCheck {
    let session: EmbeddedSession
    let plan: SetPlan
    let assigned: [RecordAddress: RecordID]
    let facts: SetFacts

    /// Returns the refusal. It names the table and the reference if they can be found.
    func refusal() throws(SQLiteError) -> Refusal {
        for change in plan.creates + plan.updates {
            let type = session.schema.types[change.type]
            let attributes = session.resolved(change, assigned: assigned, facts)
            for (attribute, target) in session.columns[change.type].references {
                guard let value = attributes[attribute], let id = RecordID(value) else { continue }
                if try session.tables[target].exists(id) { continue }
                return Refusal(
                    .constraint,
                    """
                    “\(type.name).\(attribute)” refers to a record of \
                    “\(session.schema.types[target].name)” that does not exist
                    """)
            }
        }
        for change in plan.deletes {
            let type = session.schema.types[change.type]
            let id = facts.permanentAddress(of: change.address).id
            for (position, child, reference) in session.schema.references(to: type.name) {
                if try session.tables[position].ids(where: reference, holds: id).isEmpty {
                    continue
                }
                return Refusal(
                    .constraint,
                    """
                    a record of “\(type.name)” cannot be deleted: records still refer to it in \
                    “\(child.name).\(reference.attribute)”
                    """)
            }
        }
        return Refusal(.constraint, "a foreign key of the database would not hold")
    }
}
