internal import MartletModel
internal import MartletStore
internal import SQLiteRecords

/// One to three random edits of the tables. They use existing records and references to existing
/// records, with a mark in every text.
struct RandomEdit {
    var random: SeededRandom
    let mark: String

    mutating func run(_ context: WriteContext) throws {
        for _ in 0..<(1 + random.below(3)) {
            guard let type = random.pick(context.schema.types) else { return }
            let present = try ids(of: type, context)
            switch present.isEmpty ? 0 : random.below(10) {
            case 0..<4: try insert(type, context)
            case 4..<9: try update(type, present, context)
            default:
                if let id = random.pick(present) { try context.delete(type.name, id) }
            }
        }
    }

    private mutating func insert(_ type: EntityType, _ context: WriteContext) throws {
        var values = RecordValues()
        for attribute in type.attributes where !attribute.isGenerated {
            if attribute.isRequired || random.chance(70) {
                guard let value = try value(attribute, of: type, context) else { return }
                values[attribute.name] = value
            }
        }
        try context.insert(type.name, values)
    }

    private mutating func update(
        _ type: EntityType, _ present: [RecordID], _ context: WriteContext
    ) throws {
        let writable = type.attributes.filter { !$0.isGenerated }
        guard let id = random.pick(present), let attribute = random.pick(writable),
            let value = try value(attribute, of: type, context)
        else { return }
        try context.update(type.name, id, RecordValues(names: [attribute.name], values: [value]))
    }

    /// - Returns: The value; nil if the column needs a record and there is none.
    private mutating func value(
        _ attribute: Attribute, of type: EntityType, _ context: WriteContext
    ) throws -> SQLValue? {
        if !attribute.isRequired, random.chance(10) { return .null }
        if let reference = type.reference(of: attribute.name) {
            guard let target = context.schema[reference.target],
                let id = random.pick(try ids(of: target, context))
            else { return attribute.isRequired ? nil : .null }
            return id.sqlValue
        }
        return switch attribute.kind {
        case .integer, .any: .integer(Int64(random.below(100)))
        case .real: .real(Double(random.below(1_000)) / 8)
        case .text: .text(mark)
        case .blob: .blob([[], [0], [0xff, 0xfe, 0xfd]][random.below(3)])
        case .boolean: .integer(random.chance(50) ? 1 : 0)
        case .numeric: .text("\(random.below(100)).25")
        }
    }

    private func ids(of type: EntityType, _ context: WriteContext) throws -> [RecordID] {
        let names = [type.key, type.name].map(SQLName.quoted)
        return try context.rows("SELECT \(names[0]) AS id FROM \(names[1]) ORDER BY 1")
            .compactMap { $0["id"].flatMap { RecordID($0) } }
    }
}
