import MartletModel
internal import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// The records that the true rows of several refused sets have needed so far. Each is read once.
struct TruthRecords {
    fileprivate var known: [RecordAddress: TrueRecord] = [:]
    /// The number of records that were read from the tables.
    fileprivate(set) var readCount = 0
}

extension EmbeddedSession {
    /// Reads the true rows of refused sets; see `ServerStorage.truths`.
    func truths(
        of requests: [CurrentRowsRequest], setBytes: Int, maxBytes: Int
    ) throws(SQLiteError) -> [SetTruth] {
        var truths: [SetTruth] = []
        var records = TruthRecords()
        var bytes = 0
        for request in requests {
            let truth = try truth(of: request, room: setBytes, &records)
            bytes += truth.byteCount
            guard truths.isEmpty || bytes <= maxBytes else { break }
            truths.append(truth)
        }
        truthReads += records.readCount
        return truths
    }

    /// Returns the present state of the records that a refused set names, and of those that its
    /// deletes would change, because the device may have removed these itself.
    private func truth(
        of request: CurrentRowsRequest, room: Int, _ records: inout TruthRecords
    ) throws(SQLiteError) -> SetTruth {
        var truth = GatheredTruth(room: room)
        let named = try named(by: request)
        let seen = try request.rights?.visible(
            named.compactMap(\.address), read: ruleRows(of:where:isAmong:))
        for one in named where truth.isWanted(one.address ?? one.sent) {
            var record = TrueRecord.absent
            if let address = one.address, seen?.contains(address) ?? true {
                record = try self.record(address, &records)
            }
            truth.add(
                record, at: one.address ?? one.sent, sent: one.sent.id,
                withoutNulls: columns[one.sent.type])
        }
        guard !truth.isCut else { return truth.truth(schema) }
        do throws(SQLiteError) {
            let deleted = named.compactMap { $0.isDeleted ? $0.address : nil }
            let rows = try bounded { () throws(SQLiteError) in
                // A record takes at least this many bytes.
                try affected(
                    byDeleting: deleted, updating: [:], most: room / 48 + 1, for: request.rights)
            }
            for row in rows ?? [] where row.isKnowable && truth.isWanted(row.address) {
                truth.add(
                    try record(row.address, &records), at: row.address, sent: row.address.id,
                    withoutNulls: columns[row.address.type])
            }
            if rows == nil { truth.cut() }
        } catch {
            guard error.isInterrupted, connection.isInTransaction else { throw error }
            truth.cut()
        }
        return truth.truth(schema)
    }

    /// A record that a refused set names: as it names it, and by its permanent id, if it has one.
    private typealias NamedRecord = (sent: RecordAddress, address: RecordAddress?, isDeleted: Bool)

    private func named(by request: CurrentRowsRequest) throws(SQLiteError) -> [NamedRecord] {
        var named: [NamedRecord] = []
        for changes in request.set.types {
            guard let type = schema.index(of: changes.name) else { continue }
            for (ids, isDeleted) in [
                (changes.create + changes.update, false), (changes.delete, true),
            ] {
                for id in ids {
                    let sent = RecordAddress(type, id)
                    named.append((sent, try permanent(sent, of: request.device), isDeleted))
                }
            }
        }
        return named
    }

    /// Returns the address with the permanent id; nil if a temporary id stands for no record.
    private func permanent(
        _ sent: RecordAddress, of device: Int64
    ) throws(SQLiteError) -> RecordAddress? {
        guard case .integer(let number) = sent.id, number < 0 else { return sent }
        guard device != 0,
            let known = try permanentID(of: number, type: sent.type, device: device)
        else { return nil }
        return RecordAddress(sent.type, known)
    }

    private func record(
        _ address: RecordAddress, _ records: inout TruthRecords
    ) throws(SQLiteError) -> TrueRecord {
        if let known = records.known[address] { return known }
        records.readCount += 1
        let record: TrueRecord
        do throws(SQLiteError) {
            if let row = try tables[address.type].read(address.id) {
                record = .present(row, revision: try rowFacts(address)?.revision ?? 0)
            } else {
                record = .absent
            }
        } catch {
            guard error.isMismatch else { throw error }
            record = .unsendable
        }
        records.known[address] = record
        return record
    }
}
