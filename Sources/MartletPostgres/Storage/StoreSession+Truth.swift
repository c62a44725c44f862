import MartletCore
import MartletProtocol
import MartletServerCore
import PostgresKit

extension StoreSession {
    /// Records read at once.
    private static let rowsAtOnce = 2_000

    /// The present state of the records that refused sets name, and of those their deletes would
    /// change: those the device may have removed on its own side.
    func truths(
        of questions: [TruthQuestion], maxBytes: Int
    ) throws(PostgresError) -> [[TypeChanges]] {
        var wanted = questions.map { self.wanted(by: $0) }
        let permanent = try permanentIDs(wanted, questions)
        var truths = questions.map { _ in GatheredTruth(room: maxBytes) }
        for index in questions.indices {
            for place in wanted[index].indices {
                guard case .integer(let number) = wanted[index][place].sent.id, number < 0 else {
                    continue
                }
                let temporary = RecordLookup.Temporary(
                    device: questions[index].device, type: wanted[index][place].sent.type,
                    number: number)
                wanted[index][place].id = permanent[temporary].map { .integer($0) }
            }
        }
        try read(wanted, into: &truths)
        var deleted: [[RecordAddress]] = []
        for wanted in wanted {
            deleted.append(
                wanted.compactMap { one in
                    one.isDeleted ? one.id.map { RecordAddress(one.sent.type, $0) } : nil
                })
        }
        if deleted.contains(where: { !$0.isEmpty }) {
            let affected = try affected(
                byDeleting: deleted, updating: deleted.map { _ in [:] })
            let more = affected.map { rows in
                rows.map { TruthWanted(sent: $0.address, id: $0.address.id, isDeleted: false) }
            }
            try read(more, into: &truths)
        }
        return truths.map { $0.types(schema) }
    }

    private func wanted(by question: TruthQuestion) -> [TruthWanted] {
        var wanted: [TruthWanted] = []
        for changes in question.set.types {
            guard let type = schema.index(of: changes.name) else { continue }
            func want(_ ids: [RecordID], isDeleted: Bool) {
                for id in ids {
                    wanted.append(
                        TruthWanted(
                            sent: RecordAddress(type, id), id: readable(id, type),
                            isDeleted: isDeleted))
                }
            }
            want(changes.create + changes.update, isDeleted: false)
            want(changes.delete, isDeleted: true)
        }
        return wanted
    }

    /// Nil for what no record of the type can be called: it may be why the set was refused.
    private func readable(_ id: RecordID, _ type: Int) -> RecordID? {
        checks.id(id, schema.types[type]) == nil && !id.isTemporary ? id : nil
    }

    private func permanentIDs(
        _ wanted: [[TruthWanted]], _ questions: [TruthQuestion]
    ) throws(PostgresError) -> [RecordLookup.Temporary: Int64] {
        var temporaries: [RecordLookup.Temporary] = []
        for (wanted, question) in zip(wanted, questions) where question.device != 0 {
            for one in wanted {
                guard case .integer(let number) = one.sent.id, number < 0 else { continue }
                temporaries.append(
                    .init(device: question.device, type: one.sent.type, number: number))
            }
        }
        var statements = takePending()
        if !temporaries.isEmpty {
            statements.append(RecordLookup.permanent(temporaries, tables))
        }
        let answers = try run(statements)
        guard !temporaries.isEmpty, let rows = answers.last else { return [:] }
        return try RecordLookup.permanent(rows, of: temporaries)
    }

    /// Reads records for all questions together, so many at once.
    private func read(_ wanted: [[TruthWanted]], into truths: inout [GatheredTruth])
        throws(PostgresError)
    {
        var places: [(question: Int, one: TruthWanted)] = []
        for (question, wanted) in wanted.enumerated() {
            for one in wanted { places.append((question, one)) }
        }
        var next = 0
        while next < places.count {
            let part = places[next...].prefix(Self.rowsAtOnce)
            next = part.endIndex
            var ids: [Int: Set<RecordID>] = [:]
            for (question, one) in part where truths[question].hasRoom {
                if let id = one.id { ids[one.sent.type, default: []].insert(id) }
            }
            let parts = ids.sorted { $0.key < $1.key }
            let addresses = parts.flatMap { type, ids in ids.map { RecordAddress(type, $0) } }
            var rows: [RecordAddress: (rows: PostgresRows, row: Int)] = [:]
            var known: [RecordAddress: RowFacts] = [:]
            if !parts.isEmpty {
                var statements = parts.map { model.forms[$0.key].reading(Array($0.value)) }
                statements.append(RecordLookup.facts(addresses, tables))
                let answers = try run(statements)
                for ((type, _), answer) in zip(parts, answers) {
                    for row in 0..<answer.count {
                        let id = try model.forms[type].id(answer, row, 0)
                        rows[RecordAddress(type, id)] = (answer, row)
                    }
                }
                known = try RecordLookup.facts(answers[parts.count], of: addresses)
            }
            for (question, one) in part {
                try add(one, rows, known, to: &truths[question])
            }
        }
    }

    private func add(
        _ one: TruthWanted, _ rows: [RecordAddress: (rows: PostgresRows, row: Int)],
        _ known: [RecordAddress: RowFacts], to truth: inout GatheredTruth
    ) throws(PostgresError) {
        guard let id = one.id else {
            truth.addAbsent(one.sent)
            return
        }
        let address = RecordAddress(one.sent.type, id)
        guard truth.isWanted(address) else { return }
        guard let place = rows[address] else {
            truth.addAbsent(address)
            return
        }
        let form = model.forms[address.type]
        let row: Attributes
        do throws(PostgresError) {
            row = try form.attributes(place.rows, place.row)
        } catch {
            // Nothing is said of a row that no device can be sent.
            guard error.isUnsendable else { throw error }
            return
        }
        truth.add(
            RecordEntry(
                id: id, revision: known[address]?.revision ?? 0,
                oldID: one.sent.id == id ? nil : one.sent.id,
                attributes: form.columns.withoutNulls(row)), of: address.type)
    }
}

/// One record whose truth is wanted.
private struct TruthWanted {
    let sent: RecordAddress
    /// The permanent id; nil where there is none.
    var id: RecordID?
    let isDeleted: Bool
}
