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
        var truth = Truth(room: maxBytes)
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
        _ sent: RecordAddress, _ device: Int64, to truth: inout Truth
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

/// Rows being gathered, each once.
private struct Truth {
    private var order: [Int] = []
    private var present: [Int: [RecordEntry]] = [:]
    private var absent: [Int: [RecordID]] = [:]
    private var named: Set<RecordAddress> = []
    private var room: Int

    init(room: Int) {
        self.room = room
    }

    /// Whether the record is not there yet, and there is room.
    func isWanted(_ address: RecordAddress) -> Bool {
        room > 0 && !named.contains(address)
    }

    mutating func addAbsent(_ address: RecordAddress) {
        guard isWanted(address) else { return }
        named.insert(address)
        note(address.type, bytes: 40)
        absent[address.type, default: []].append(address.id)
    }

    mutating func add(_ entry: RecordEntry, of type: Int) {
        named.insert(RecordAddress(type, entry.id))
        note(type, bytes: 40 + entry.attributes.roughByteCount)
        present[type, default: []].append(entry)
    }

    private mutating func note(_ type: Int, bytes: Int) {
        room -= bytes
        if present[type] == nil, absent[type] == nil { order.append(type) }
    }

    func types(_ schema: Schema) -> [TypeChanges] {
        order.map { type in
            let entries = present[type] ?? []
            return TypeChanges(
                name: schema.types[type].name, update: entries.map(\.id),
                delete: absent[type] ?? [], entries: entries)
        }
    }
}
