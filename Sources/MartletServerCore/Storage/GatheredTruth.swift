package import MartletModel
package import MartletProtocol

/// The present state of the records that a refused set names.
package struct SetTruth: Sendable {
    /// Existing records under `update`, missing ones under `delete`.
    package var types: [TypeChanges]
    /// True if some records are left out, because they are too many or too large.
    package var isCut: Bool
    /// The approximate bytes on the wire.
    package var byteCount: Int

    package init(types: [TypeChanges], isCut: Bool, byteCount: Int) {
        self.types = types
        self.isCut = isCut
        self.byteCount = byteCount
    }
}

/// The state of a record when true rows are read.
package enum TrueRecord: Sendable {
    case present(Attributes, revision: Revision)
    case absent
    /// There is a row, but devices cannot receive it.
    case unsendable

    /// The approximate bytes in memory.
    package var byteCount: Int {
        if case .present(let attributes, _) = self { return 40 + attributes.heldByteCount }
        return 40
    }
}

/// Gathers the true rows of one refused set, each record once, as far as there is room. It works in
/// the same way for every storage.
package struct GatheredTruth {
    private var order: [Int] = []
    private var present: [Int: [RecordEntry]] = [:]
    private var absent: [Int: [RecordID]] = [:]
    private var named: Set<RecordAddress> = []
    private let room: Int
    /// The approximate bytes on the wire so far.
    package private(set) var byteCount = 0
    /// True if a wanted record was left out.
    package private(set) var isCut = false

    /// Makes an empty truth.
    ///
    /// - Parameter room: The approximate bytes that the rows may take on the wire. The first record
    ///   always has room.
    package init(room: Int) {
        self.room = room
    }

    /// Returns whether the record has not been added yet and there may be room.
    package func isWanted(_ address: RecordAddress) -> Bool {
        !isCut && !named.contains(address)
    }

    /// Notes that records are left out, and takes no more.
    package mutating func cut() { isCut = true }

    /// Adds the present state of a record.
    ///
    /// - Parameters:
    ///   - address: The record by its permanent id, if it has one.
    ///   - sent: The id by which the set names it.
    package mutating func add(
        _ record: TrueRecord, at address: RecordAddress, sent: RecordID,
        withoutNulls columns: TypeColumns
    ) {
        guard isWanted(address) else { return }
        switch record {
        case .absent:
            guard take(address, bytes: 4 + address.id.wireByteCount) else { return }
            absent[address.type, default: []].append(address.id)
        case .unsendable:
            // This record is left out, and all others are kept.
            named.insert(address)
        case .present(let row, let revision):
            let attributes = columns.withoutNulls(row)
            let bytes = 40 + address.id.wireByteCount + attributes.wireByteCount
            guard take(address, bytes: bytes) else { return }
            present[address.type, default: []].append(
                RecordEntry(
                    id: address.id, revision: revision, oldID: sent == address.id ? nil : sent,
                    attributes: attributes))
        }
    }

    /// Notes a record of the given bytes; returns false if there is no room for it.
    private mutating func take(_ address: RecordAddress, bytes: Int) -> Bool {
        guard named.isEmpty || byteCount + bytes <= room else {
            isCut = true
            return false
        }
        named.insert(address)
        byteCount += bytes
        if present[address.type] == nil, absent[address.type] == nil { order.append(address.type) }
        return true
    }

    /// Returns the rows that were gathered.
    package func truth(_ schema: Schema) -> SetTruth {
        let types = order.map { type in
            let entries = present[type] ?? []
            return TypeChanges(
                name: schema.types[type].name, update: entries.map(\.id),
                delete: absent[type] ?? [], entries: entries)
        }
        return SetTruth(types: types, isCut: isCut, byteCount: byteCount)
    }
}
