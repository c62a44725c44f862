import MartletModel
import MartletServerCore
import PostgresKit

/// The facts that the sets of a batch need.
private struct FactsWanted {
    /// The temporary ids that only the device's id map knows.
    var mapped: [TemporaryAddress] = []
    /// The temporary ids of records to be created.
    var created: [TemporaryAddress] = []
    /// The number of new keys, by type.
    var keys: [Int]
    /// Whether a set deletes records that other records may depend on.
    var deletesParents = false

    init(_ requests: [FactsRequest], _ model: PostgresModel) {
        keys = Array(repeating: 0, count: model.forms.count)
        for request in requests {
            guard let plan = request.plan else { continue }
            for create in plan.creates {
                guard
                    let temporary = TemporaryAddress(device: request.device, create.address)
                else { continue }
                keys[create.type] += 1
                if request.device != 0 { created.append(temporary) }
            }
            if request.device != 0 {
                mapped += plan.earlierTemporaries.compactMap {
                    TemporaryAddress(device: request.device, $0)
                }
            }
            deletesParents =
                deletesParents
                || plan.deletes.contains { !model.cascades.links(from: $0.type).isEmpty }
        }
    }
}

/// The purpose of a statement in the round trip that reads the facts of a batch.
private enum FactsPurpose {
    /// It writes what the reads depend on.
    case none
    /// It returns earlier verdicts.
    case verdicts
    /// It returns the temporary ids of records to be created that have a permanent id already.
    case used
    /// It returns the keys of the rows that it locked.
    case locked(type: Int)
    /// It returns the records with external writes that are not in the log yet.
    case external
    /// It returns the facts of records that are stored apart from their rows.
    case records
}

extension DataSetSession {
    func facts(for requests: [FactsRequest]) throws(PostgresError) -> [SetFacts] {
        var refusals = try refusalsForCharacters(requests)
        refusals.merge(try refusalsForNewColumns(requests)) { first, _ in first }
        guard !refusals.isEmpty else { return try storableFacts(for: requests) }
        var facts = try storableFacts(
            for: requests.enumerated().map { askable($1, refusals[$0]) })
        for (index, refusal) in refusals { facts[index].refusal = refusal }
        return facts
    }

    /// Returns refusals, by position, that put off sets that name an unknown type or attribute, if
    /// the tables have changed since they were read.
    private func refusalsForNewColumns(
        _ requests: [FactsRequest]
    ) throws(PostgresError) -> [Int: Refusal] {
        let unknown = requests.indices.filter { index in
            guard case .failure(let refusal) = requests[index].reading else { return false }
            return refusal.isOfTheSchema
        }
        guard !unknown.isEmpty, try TableState.read(connection) != state else { return [:] }
        let refusal = Refusal(
            .busy,
            """
            the data set's tables have changed, and the server has yet to take them up as they are now; \
            send it again
            """, retryAfter: Self.takeUpSeconds)
        return Dictionary(uniqueKeysWithValues: unknown.map { ($0, refusal) })
    }

    private func storableFacts(
        for requests: [FactsRequest]
    ) throws(PostgresError) -> [SetFacts] {
        let wanted = FactsWanted(requests, model)
        var statements = takePending()
        var permanent: [TemporaryAddress: Int64] = [:]
        if !wanted.mapped.isEmpty {
            statements.append(RecordLookup.permanent(wanted.mapped, tables))
            let answers = try run(statements)
            permanent = try RecordLookup.permanent(
                answers[statements.count - 1], of: wanted.mapped)
            statements = []
        }
        var facts = requests.map { Self.resolved($0, permanent) }
        let locks = RowLocks(requests, facts, barred: barred)
        let addresses = locks.all
        var steps = statements.map { (purpose: FactsPurpose.none, statement: $0) }
        steps += StoredVerdicts.statements(requests).map { (.verdicts, $0) }
        if !wanted.created.isEmpty {
            steps.append((.used, RecordLookup.permanent(wanted.created, tables)))
        }
        steps += locks.statements(model.forms, isVersioned: horizon != nil).map {
            (.locked(type: $0.type), $0.statement)
        }
        if !wanted.deletesParents, !addresses.isEmpty {
            steps.append((.external, RecordLookup.external(addresses, tables)))
            steps.append((.records, RecordLookup.facts(addresses, tables)))
        }
        let answers = try run(steps.map(\.statement), drawing: drawings(wanted.keys))
        var verdicts = StoredVerdicts()
        var used: [TemporaryAddress: Int64] = [:]
        var known = RecordFacts(external: [], facts: [:], held: [:])
        for (step, rows) in zip(steps, answers) {
            switch step.purpose {
            case .none: break
            case .verdicts: try verdicts.add(rows)
            case .used: used = try RecordLookup.permanent(rows, of: wanted.created)
            case .locked(let type): try RowLocks.add(rows, model.forms[type], to: &known.held)
            case .external: known.external = try RecordLookup.external(rows, of: addresses)
            case .records: known.facts = try RecordLookup.facts(rows, of: addresses)
            }
        }
        if wanted.deletesParents {
            try addAffected(to: &facts, of: requests)
            known = try lockAndRead(
                addresses + facts.flatMap { $0.affected.map(\.address) }, held: known.held)
        }
        try wait(for: &known, locks)
        try awaitUnread(
            addresses + facts.flatMap { $0.affected.map(\.address) }, &known)
        contested.subtract(addresses)
        contested.formUnion(known.contested)
        for index in requests.indices {
            fill(&facts[index], requests[index], verdicts, used, known.facts)
        }
        return facts
    }

    /// Returns the facts that are known before the first query: permanent ids.
    private static func resolved(
        _ request: FactsRequest, _ permanent: [TemporaryAddress: Int64]
    ) -> SetFacts {
        var facts = SetFacts()
        guard request.device != 0, let plan = request.plan else { return facts }
        for address in plan.earlierTemporaries {
            if let temporary = TemporaryAddress(device: request.device, address) {
                facts.permanent[address] = permanent[temporary].map { .integer($0) }
            }
        }
        return facts
    }

    private func fill(
        _ facts: inout SetFacts, _ request: FactsRequest, _ verdicts: StoredVerdicts,
        _ used: [TemporaryAddress: Int64], _ known: [RecordAddress: RowFacts]
    ) {
        facts.used = verdicts.used(by: request)
        facts.decided = verdicts.decided(request)
        guard facts.decided == nil else {
            facts.affected = []
            return
        }
        if let dependency = request.dependency {
            facts.isDependencyDecided = verdicts[dependency] != nil
        }
        guard let plan = request.plan else { return }
        for change in plan.updates + plan.deletes {
            let address = facts.permanentAddress(of: change.address)
            facts.rows[address] = known[address]
        }
        for create in plan.creates {
            guard let temporary = TemporaryAddress(device: request.device, create.address) else {
                facts.rows[create.address] = known[create.address]
                continue
            }
            if used[temporary] != nil { facts.usedTemporaries.append(create.address) }
        }
        facts.affected = facts.affected.map {
            AffectedRow(
                address: $0.address, effect: $0.effect, facts: known[$0.address],
                isSendable: $0.isSendable)
        }
    }
}
