import MartletCore
import MartletProtocol

/// Knows which facts, asked for at the beginning of a request, its earlier sets have overtaken.
struct FactsAge {
    private var touched: Set<RecordAddress> = []
    private var identifiers: Set<String> = []
    private var hasApplied = false

    /// Notes a set that was decided after facts were asked for.
    /// - Parameter accepted: What came of it, where it was accepted now.
    mutating func note(_ question: SetQuestion, accepted: ChangeSet?, _ schema: Schema) {
        if let identifier = question.identifier { identifiers.insert(identifier) }
        guard let accepted, let plan = question.plan else { return }
        hasApplied = true
        for create in plan.creates { touched.insert(create.address) }
        for changes in accepted.types {
            guard let type = schema.index(of: changes.name) else { continue }
            for id in changes.create { touched.insert(RecordAddress(type, id)) }
            for id in changes.update { touched.insert(RecordAddress(type, id)) }
            for id in changes.delete { touched.insert(RecordAddress(type, id)) }
        }
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
