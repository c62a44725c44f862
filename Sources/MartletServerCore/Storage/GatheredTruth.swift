package import MartletCore
package import MartletProtocol

/// The present state of the records a refused set names, being gathered: each once, as far as there
/// is room. The same for every storage.
package struct GatheredTruth {
    private var order: [Int] = []
    private var present: [Int: [RecordEntry]] = [:]
    private var absent: [Int: [RecordID]] = [:]
    private var named: Set<RecordAddress> = []
    private var room: Int

    /// - Parameter room: About how many bytes it may take on the wire.
    package init(room: Int) {
        self.room = room
    }

    package var hasRoom: Bool { room > 0 }

    /// Whether the record is not there yet, and there is room.
    package func isWanted(_ address: RecordAddress) -> Bool {
        hasRoom && !named.contains(address)
    }

    /// Says that there is no such record.
    package mutating func addAbsent(_ address: RecordAddress) {
        guard isWanted(address) else { return }
        named.insert(address)
        note(address.type, bytes: 40)
        absent[address.type, default: []].append(address.id)
    }

    /// Adds a record as it is now.
    /// - Parameter type: The type's position in the schema.
    package mutating func add(_ entry: RecordEntry, of type: Int) {
        named.insert(RecordAddress(type, entry.id))
        note(type, bytes: 40 + entry.attributes.roughByteCount)
        present[type, default: []].append(entry)
    }

    private mutating func note(_ type: Int, bytes: Int) {
        room -= bytes
        if present[type] == nil, absent[type] == nil { order.append(type) }
    }

    /// What was gathered: what exists under `update`, what does not under `delete`.
    package func types(_ schema: Schema) -> [TypeChanges] {
        order.map { type in
            let entries = present[type] ?? []
            return TypeChanges(
                name: schema.types[type].name, update: entries.map(\.id),
                delete: absent[type] ?? [], entries: entries)
        }
    }
}
