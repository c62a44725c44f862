package import MartletModel
package import MartletProtocol

/// The effects of a set on each record that it touched, in order.
package struct SetEffects {
    /// The kind of a change.
    package enum Deed {
        case created
        case updated
        case deleted
    }

    /// The effect on one record.
    package struct Line {
        package let address: RecordAddress
        package var deed: Deed
        package var attributes: Attributes
        /// The temporary id of a created record.
        package var temporary: RecordID?
    }

    private var lines: [Line] = []
    private var positions: [RecordAddress: Int] = [:]
    /// The bytes that the effects hold. Encoded, they take at least as many.
    package private(set) var heldByteCount = 0
    /// The types in the order in which they are listed.
    private var types: [Int]

    package init(types: [Int]) {
        self.types = types
    }

    package subscript(address: RecordAddress) -> Line? {
        positions[address].map { lines[$0] }
    }

    /// Adds or replaces the effect on a record.
    package mutating func set(
        _ address: RecordAddress, _ deed: Deed, _ attributes: Attributes = Attributes(),
        temporary: RecordID? = nil
    ) {
        heldByteCount += attributes.heldByteCount + 1
        if let position = positions[address] {
            heldByteCount -= lines[position].attributes.heldByteCount + 1
            lines[position].deed = deed
            lines[position].attributes = attributes
            return
        }
        positions[address] = lines.count
        lines.append(
            Line(address: address, deed: deed, attributes: attributes, temporary: temporary))
        if !types.contains(address.type) { types.append(address.type) }
    }

    /// Returns the set as every device but its author receives it, and the temporary ids of the
    /// created records.
    package func changeSet(
        _ schema: Schema, revision: Revision
    ) -> (set: ChangeSet, created: [RecordID?]) {
        var typePositions = [Int](repeating: 0, count: schema.types.count)
        for (position, type) in types.enumerated() { typePositions[type] = position }
        var changes = types.map { TypeChanges(name: schema.types[$0].name) }
        var created = [[RecordID?]](repeating: [], count: types.count)
        for line in lines {
            let position = typePositions[line.address.type]
            switch line.deed {
            case .deleted:
                changes[position].delete.append(line.address.id)
                continue
            case .created:
                changes[position].create.append(line.address.id)
                created[position].append(line.temporary)
            case .updated:
                changes[position].update.append(line.address.id)
            }
            changes[position].entries.append(
                RecordEntry(
                    id: line.address.id, revision: revision, attributes: line.attributes))
        }
        var set = ChangeSet(
            types: changes.filter { !$0.entries.isEmpty || !$0.delete.isEmpty })
        set.revision = revision
        return (set, created.flatMap { $0 })
    }
}
