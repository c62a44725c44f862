import MartletCore
import MartletProtocol
import SQLiteKit
import SQLiteRecords

extension EmbeddedSession {
    /// The present state of the records a refused set names, and of those its deletes would
    /// change: those the device may have removed on its own side.
    func truth(
        of question: TruthQuestion, maxBytes: Int
    ) throws(SQLiteError) -> [TypeChanges] {
        var truth = GatheredTruth(room: maxBytes)
        var deleted: [RecordAddress] = []
        for changes in question.set.types {
            guard let type = schema.index(of: changes.name) else { continue }
            for id in changes.create + changes.update {
                _ = try add(RecordAddress(type, id), question.device, to: &truth)
            }
            for id in changes.delete {
                let address = RecordAddress(type, id)
                if let found = try add(address, question.device, to: &truth) {
                    deleted.append(found)
                }
            }
        }
        for row in try affected(byDeleting: deleted, updating: [:]) {
            _ = try add(row.address, question.device, to: &truth)
        }
        return truth.types(schema)
    }

    /// - Returns: The record's permanent address, where it has one.
    private func add(
        _ sent: RecordAddress, _ device: Int64, to truth: inout GatheredTruth
    ) throws(SQLiteError) -> RecordAddress? {
        var address = sent
        if case .integer(let number) = sent.id, number < 0 {
            let known =
                device == 0
                ? nil : try permanentID(of: number, type: sent.type, device: device)
            guard let known else {
                truth.addAbsent(sent)
                return nil
            }
            address = RecordAddress(sent.type, known)
        }
        guard truth.isWanted(address) else { return address }
        let row: Attributes?
        do throws(SQLiteError) {
            row = try tables[address.type].read(address.id)
        } catch {
            // Nothing is said of a row that no device can be sent.
            guard error.isMismatch else { throw error }
            return address
        }
        guard let row else {
            truth.addAbsent(address)
            return address
        }
        truth.add(
            RecordEntry(
                id: address.id, revision: try rowFacts(address)?.revision ?? 0,
                oldID: sent.id == address.id ? nil : sent.id,
                attributes: columns[address.type].withoutNulls(row)), of: address.type)
        return address
    }
}
