import MartletCore
import MartletProtocol

/// Knows which facts, asked for at the beginning of a request, its earlier sets have overtaken.
struct FactsAge {
    private var touched: Set<RecordAddress> = []
    private var identifiers: Set<String> = []
    private var hasApplied = false

    /// Notes a set that was decided after facts were asked for.
    mutating func note(_ question: SetQuestion, _ facts: SetFacts, isAccepted: Bool) {
        if let identifier = question.identifier { identifiers.insert(identifier) }
        guard facts.decided == nil, isAccepted, let plan = question.plan else { return }
        hasApplied = true
        for change in plan.creates { touched.insert(change.address) }
        for change in plan.updates { touched.insert(facts.permanentAddress(of: change.address)) }
        for change in plan.deletes { touched.insert(facts.permanentAddress(of: change.address)) }
        for row in facts.affected { touched.insert(row.address) }
    }

    /// Whether the facts have to be asked for anew.
    func outdates(_ facts: SetFacts, of question: SetQuestion) -> Bool {
        if let identifier = question.identifier, identifiers.contains(identifier) { return true }
        if let dependency = question.dependency, identifiers.contains(dependency) { return true }
        guard hasApplied, let plan = question.plan else { return false }
        // What a delete would change is not known by address.
        if !plan.deletes.isEmpty || !plan.foreignTemporaries.isEmpty { return true }
        return plan.creates.contains { touched.contains($0.address) }
            || plan.updates.contains {
                touched.contains(facts.permanentAddress(of: $0.address))
            }
    }
}
