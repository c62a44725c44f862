import MartletCore
import MartletProtocol

/// What became of each record a set touched, in the order it was touched.
struct SetAccount {
    enum Deed {
        case created
        case updated
        case deleted
    }

    struct Line {
        let address: RecordAddress
        var deed: Deed
        var attributes: Attributes
        /// The id a created record had on its device.
        var temporary: RecordID?
    }

    private var lines: [Line] = []
    private var positions: [RecordAddress: Int] = [:]
    /// The types in the order they are listed.
    private var types: [Int]

    init(types: [Int]) {
        self.types = types
    }

    subscript(address: RecordAddress) -> Line? {
        positions[address].map { lines[$0] }
    }

    /// Writes or replaces a record's line.
    mutating func set(
        _ address: RecordAddress, _ deed: Deed, _ attributes: Attributes = Attributes(),
        temporary: RecordID? = nil
    ) {
        if let position = positions[address] {
            lines[position].deed = deed
            lines[position].attributes = attributes
            return
        }
        positions[address] = lines.count
        lines.append(
            Line(address: address, deed: deed, attributes: attributes, temporary: temporary))
        if !types.contains(address.type) { types.append(address.type) }
    }

    /// The set as everyone but its author receives it.
    func changeSet(
        _ schema: Schema, revision: Revision
    ) -> (set: ChangeSet, created: [RecordID?]) {
        var places = [Int](repeating: 0, count: schema.types.count)
        for (place, type) in types.enumerated() { places[type] = place }
        var changes = types.map { TypeChanges(name: schema.types[$0].name) }
        var created = [[RecordID?]](repeating: [], count: types.count)
        for line in lines {
            let place = places[line.address.type]
            switch line.deed {
            case .deleted:
                changes[place].delete.append(line.address.id)
                continue
            case .created:
                changes[place].create.append(line.address.id)
                created[place].append(line.temporary)
            case .updated:
                changes[place].update.append(line.address.id)
            }
            changes[place].entries.append(
                RecordEntry(
                    id: line.address.id, revision: revision, attributes: line.attributes))
        }
        var set = ChangeSet(
            types: changes.filter { !$0.entries.isEmpty || !$0.delete.isEmpty })
        set.revision = revision
        return (set, created.flatMap { $0 })
    }
}
