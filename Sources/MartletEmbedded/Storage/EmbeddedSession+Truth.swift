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
        var deleted: [RecordAddress] = []
        for changes in request.set.types {
            guard let type = schema.index(of: changes.name) else { continue }
            for id in changes.create + changes.update {
                _ = try add(RecordAddress(type, id), request.device, to: &truth, &records)
            }
            for id in changes.delete {
                let address = RecordAddress(type, id)
                if let found = try add(address, request.device, to: &truth, &records) {
                    deleted.append(found)
                }
            }
        }
        guard !truth.isCut else { return truth.truth(schema) }
        do throws(SQLiteError) {
            let rows = try bounded { () throws(SQLiteError) in
                // A record takes at least this many bytes.
                try affected(byDeleting: deleted, updating: [:], most: room / 48 + 1)
            }
            for row in rows ?? [] where row.isKnowable {
                _ = try add(row.address, request.device, to: &truth, &records)
            }
            if rows == nil { truth.cut() }
        } catch {
            guard error.isInterrupted, connection.isInTransaction else { throw error }
            truth.cut()
        }
        return truth.truth(schema)
    }

    /// Adds a record to the truth.
    ///
    /// - Returns: The record's permanent address, if it has one.
    private func add(
        _ sent: RecordAddress, _ device: Int64, to truth: inout GatheredTruth,
        _ records: inout TruthRecords
    ) throws(SQLiteError) -> RecordAddress? {
        var address = sent
        if case .integer(let number) = sent.id, number < 0 {
            let known =
                device == 0
                ? nil : try permanentID(of: number, type: sent.type, device: device)
            guard let known else {
                truth.add(.absent, at: sent, sent: sent.id, withoutNulls: columns[sent.type])
                return nil
            }
            address = RecordAddress(sent.type, known)
        }
        guard truth.isWanted(address) else { return address }
        truth.add(
            try record(address, &records), at: address, sent: sent.id,
            withoutNulls: columns[address.type])
        return address
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
