import MartletModel
internal import MartletProtocol
import MartletServerCore
import PostgresKit

extension DataSetSession {
    /// Reads the true rows for refused sets; see `ServerStorage.truths`.
    func truths(
        of requests: [CurrentRowsRequest], setBytes: Int, maxBytes: Int
    ) throws(PostgresError) -> [SetTruth] {
        try lookUp(
            charactersOf: requests.lazy.flatMap(\.set.types).flatMap {
                ($0.create + $0.update + $0.delete).lazy.map(\.description)
            })
        let wanted = try visible(
            try permanent(requests.map { self.wanted(by: $0) }, requests), requests)
        var records = TruthRecords()
        var truths: [SetTruth] = []
        var bytes = 0
        var next = 0
        while next < requests.count {
            var run = Array(wanted[run(of: wanted, from: next)])
            try read(run, into: &records, maxBytes: maxBytes)
            if let deleted = cascading(run[0]) {
                let affected = try affected(
                    byDeleting: [deleted], updating: [[:]], for: requests[next].rights)
                run[0] += affected[0].filter(\.isKnowable).map {
                    TruthWanted(sent: $0.address, id: $0.address.id, isDeleted: false)
                }
                try read(run, into: &records, maxBytes: maxBytes)
            }
            // The first set is answered even without room, so its records are read as far as one
            // set allows.
            if truths.isEmpty { try read([run[0]], into: &records, maxBytes: setBytes) }
            for wanted in run {
                let (truth, isWhole) = gather(wanted, records, room: setBytes)
                bytes += truth.byteCount
                guard truths.isEmpty || bytes <= maxBytes && isWhole else { return truths }
                truths.append(truth)
            }
            next += run.count
        }
        return truths
    }

    /// Returns the requests, from one on, whose records are read together. A request whose
    /// deletes change other records is read alone.
    private func run(of wanted: [[TruthWanted]], from first: Int) -> Range<Int> {
        guard cascading(wanted[first]) == nil else { return first..<(first + 1) }
        var end = first + 1
        while end < wanted.count, cascading(wanted[end]) == nil { end += 1 }
        return first..<end
    }

    /// Returns the records that a set deletes; nil if that changes no others.
    private func cascading(_ wanted: [TruthWanted]) -> [RecordAddress]? {
        let deleted = wanted.compactMap { one -> RecordAddress? in
            one.isDeleted && !reachesBarred(deletingFrom: one.sent.type) ? one.existing : nil
        }
        let changesOthers = deleted.contains { !model.cascades.links(from: $0.type).isEmpty }
        return changesOthers ? deleted : nil
    }

    private func wanted(by request: CurrentRowsRequest) -> [TruthWanted] {
        var wanted: [TruthWanted] = []
        for changes in request.set.types {
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

    /// Returns the id; nil if no record of the type can have it, which may be why the set was
    /// refused.
    private func readable(_ id: RecordID, _ type: Int) -> RecordID? {
        checks.id(id, schema.types[type]) == nil && !id.isTemporary
            && (!lacksCharacters || canHold(id.description)) ? id : nil
    }

    /// Marks the records that their sets' senders may not see.
    private func visible(
        _ wanted: [[TruthWanted]], _ requests: [CurrentRowsRequest]
    ) throws(PostgresError) -> [[TruthWanted]] {
        var found = wanted
        for (index, request) in requests.enumerated() {
            guard let rights = request.rights else { continue }
            let seen = try rights.visible(
                wanted[index].compactMap(\.address).filter { !barred.contains($0.type) },
                read: ruleRows(of:where:isAmong:))
            for position in found[index].indices {
                guard let address = found[index][position].address else { continue }
                found[index][position].isHidden = !seen.contains(address)
            }
        }
        return found
    }

    /// Finds the permanent ids of records that are named by temporary ones.
    private func permanent(
        _ wanted: [[TruthWanted]], _ requests: [CurrentRowsRequest]
    ) throws(PostgresError) -> [[TruthWanted]] {
        let permanent = try permanentIDs(wanted, requests)
        var found = wanted
        for index in requests.indices {
            for position in found[index].indices {
                let temporary = TemporaryAddress(
                    device: requests[index].device, found[index][position].sent)
                guard let temporary else { continue }
                found[index][position].id = permanent[temporary].map { .integer($0) }
            }
        }
        return found
    }

    private func permanentIDs(
        _ wanted: [[TruthWanted]], _ requests: [CurrentRowsRequest]
    ) throws(PostgresError) -> [TemporaryAddress: Int64] {
        var temporaries: [TemporaryAddress] = []
        for (wanted, request) in zip(wanted, requests) where request.device != 0 {
            temporaries += wanted.compactMap {
                TemporaryAddress(device: request.device, $0.sent)
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

    /// Reads the records that are not known yet, page by page, until it has read `maxBytes` of
    /// them.
    private func read(
        _ wanted: [[TruthWanted]], into records: inout TruthRecords, maxBytes: Int
    ) throws(PostgresError) {
        var addresses: [RecordAddress] = []
        var named: Set<RecordAddress> = []
        for one in wanted.joined() {
            guard let address = one.existing, records.known[address] == nil,
                !barred.contains(address.type), named.insert(address).inserted
            else { continue }
            addresses.append(address)
        }
        var next = 0
        var bytes = 0
        var count = TruthRecords.leastAtOnce
        while next < addresses.count, bytes < maxBytes {
            let page = addresses[next...].prefix(count)
            next = page.endIndex
            let read = try self.read(Array(page), into: &records)
            bytes += read
            // The next page should take about a mebibyte.
            count = TruthRecords.pageRecords(after: page.count, of: read)
        }
    }

    /// Reads one page of records.
    /// - Returns: The approximate bytes of the records.
    private func read(
        _ addresses: [RecordAddress], into records: inout TruthRecords
    ) throws(PostgresError) -> Int {
        var ids: [Int: [RecordID]] = [:]
        for address in addresses { ids[address.type, default: []].append(address.id) }
        let parts = ids.sorted { $0.key < $1.key }
        var statements = parts.map { model.forms[$0.key].reading($0.value) }
        statements.append(RecordLookup.facts(addresses, tables))
        let answers = try run(statements)
        let known = try RecordLookup.facts(answers[parts.count], of: addresses)
        for address in addresses { records.known[address] = .absent }
        for ((type, _), answer) in zip(parts, answers) {
            let form = model.forms[type]
            for row in 0..<answer.count {
                let address = RecordAddress(type, try form.id(answer, row, 0))
                do throws(PostgresError) {
                    records.known[address] = .present(
                        try form.attributes(answer, row), revision: known[address]?.revision ?? 0)
                } catch {
                    guard error.isUnsendable else { throw error }
                    records.known[address] = .unsendable
                }
            }
        }
        return addresses.reduce(0) { $0 + (records.known[$1]?.byteCount ?? 0) }
    }

    /// Collects the true rows of one set.
    /// - Returns: The rows, and whether all its records have been read.
    private func gather(
        _ wanted: [TruthWanted], _ records: TruthRecords, room: Int
    ) -> (truth: SetTruth, isWhole: Bool) {
        var truth = GatheredTruth(room: room)
        var isWhole = true
        // Records that cannot be read are left out.
        for one in wanted where !barred.contains(one.sent.type) {
            let address = one.address ?? one.sent
            let record = one.existing == nil ? .absent : records.known[address]
            guard let record else {
                isWhole = isWhole && truth.isCut
                truth.cut()
                break
            }
            truth.add(
                record, at: address, sent: one.sent.id,
                withoutNulls: model.forms[address.type].columns)
        }
        return (truth.truth(schema), isWhole)
    }
}

/// The records that several refused sets have needed so far. Each is read once.
private struct TruthRecords {
    /// The number of records in the first page.
    static let leastAtOnce = 64
    private static let mostAtOnce = 2_000
    private static let pageBytes = 1 << 20

    var known: [RecordAddress: TrueRecord] = [:]

    /// Returns the number of records for the next page, given the records and bytes of the last
    /// one.
    static func pageRecords(after count: Int, of bytes: Int) -> Int {
        let fitting = pageBytes * count / max(1, bytes)
        return min(max(1, fitting), 4 * count, mostAtOnce)
    }
}

/// A record that a refused set needs.
private struct TruthWanted {
    let sent: RecordAddress
    /// The permanent id; nil if there is none.
    var id: RecordID?
    let isDeleted: Bool
    /// True if the set's sender may not see the record, which is then one that does not exist.
    var isHidden = false

    /// The record as `address`; nil if it does not exist for the sender.
    var existing: RecordAddress? { isHidden ? nil : address }
    /// The record by its permanent id; nil if it has none.
    var address: RecordAddress? { id.map { RecordAddress(sent.type, $0) } }
}
