import MartletModel
import MartletProtocol

/// Knows which facts, requested at the beginning of a batch, earlier sets have made stale.
///
/// Sets are noted when they are decided, before they are carried out. A set that the storage then
/// refuses stays noted, which costs only another request for facts.
struct StaleFacts {
    private struct SetNumber: Hashable {
        let device: Int64
        let sequence: Int64
    }

    private let schema: Schema
    private var identifiers: Set<String> = []
    private var numbers: Set<SetNumber> = []
    private var temporaries: Set<TemporaryAddress> = []
    private var touched: Set<RecordAddress> = []
    private var touchedTypes: Set<Int> = []
    /// The types with new records, whose ids are not known beforehand.
    private var createdTypes: Set<Int> = []
    /// The types whose records a delete in a type may change, as far as they were needed.
    private var reach: [Int: Set<Int>] = [:]

    init(schema: Schema) {
        self.schema = schema
    }

    /// Notes a set that was decided on.
    mutating func note(_ request: FactsRequest) {
        if let identifier = request.identifier { identifiers.insert(identifier) }
        if request.device != 0, let sequence = request.sequence {
            numbers.insert(SetNumber(device: request.device, sequence: sequence))
        }
    }

    /// Notes the changes of a set that will be carried out.
    mutating func note(_ work: SetWork) {
        for create in work.plan.creates {
            if let temporary = TemporaryAddress(
                device: work.request.device, create.address)
            {
                temporaries.insert(temporary)
                createdTypes.insert(create.type)
            }
            touch(create.address)
        }
        for update in work.plan.updates { touch(work.facts.permanentAddress(of: update.address)) }
        for delete in work.plan.deletes { touch(work.facts.permanentAddress(of: delete.address)) }
        for row in work.facts.affected { touch(row.address) }
    }

    /// Notes the changes of a set that was carried out.
    mutating func note(accepted: ChangeSet) {
        for changes in accepted.types {
            guard let type = schema.index(of: changes.name) else { continue }
            for id in changes.create { touch(RecordAddress(type, id)) }
            for id in changes.update { touch(RecordAddress(type, id)) }
            for id in changes.delete { touch(RecordAddress(type, id)) }
        }
    }

    private mutating func touch(_ address: RecordAddress) {
        touched.insert(address)
        touchedTypes.insert(address.type)
    }

    /// Returns whether the batch has decided a set with the device's number that this set has, too.
    func isNumbered(_ request: FactsRequest) -> Bool {
        guard request.device != 0, let sequence = request.sequence else { return false }
        return numbers.contains(SetNumber(device: request.device, sequence: sequence))
    }

    /// Returns whether the facts have to be requested again.
    mutating func outdates(_ facts: SetFacts, of request: FactsRequest) -> Bool {
        if let identifier = request.identifier, identifiers.contains(identifier) { return true }
        if let dependency = request.dependency, identifiers.contains(dependency) { return true }
        if isNumbered(request) { return true }
        guard !touchedTypes.isEmpty, let plan = request.plan else { return false }
        let device = request.device
        func isKnown(_ address: RecordAddress) -> Bool {
            TemporaryAddress(device: device, address).map(temporaries.contains) ?? false
        }
        return plan.earlierTemporaries.contains(where: isKnown)
            || plan.creates.contains {
                $0.id.isTemporary ? isKnown($0.address) : touched.contains($0.address)
            }
            || plan.updates.contains { isTouched($0, facts) }
            || plan.deletes.contains { isTouched($0, facts) }
            || reaches(plan.deletes)
    }

    private func isTouched(_ change: SetPlan.Change, _ facts: SetFacts) -> Bool {
        let address = facts.permanentAddress(of: change.address)
        return touched.contains(address)
            || facts.rows[address] == nil && createdTypes.contains(address.type)
    }

    /// Returns whether deletes may change records of types that were touched. Their addresses are
    /// not known.
    private mutating func reaches(_ deletes: [SetPlan.Change]) -> Bool {
        for type in Set(deletes.map(\.type)) where !reach(of: type).isDisjoint(with: touchedTypes) {
            return true
        }
        return false
    }

    /// Returns whether a set deletes records to which other records may refer.
    mutating func reachesOthers(_ request: FactsRequest) -> Bool {
        for type in Set(request.plan?.deletes.map(\.type) ?? []) where !reach(of: type).isEmpty {
            return true
        }
        return false
    }

    private mutating func reach(of type: Int) -> Set<Int> {
        if let known = reach[type] { return known }
        var reached: Set<Int> = []
        var next = [type]
        while let target = next.popLast() {
            for (position, _, _) in schema.references(to: schema.types[target].name) {
                if reached.insert(position).inserted { next.append(position) }
            }
        }
        reach[type] = reached
        return reached
    }
}
