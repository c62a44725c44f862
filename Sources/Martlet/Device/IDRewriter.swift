internal import MartletCore
internal import MartletProtocol

/// Puts permanent ids in place of temporary ones: in a change's own id and in its references.
struct IDRewriter {
    let schema: Schema
    /// What temporary ids became.
    let assigned: [RecordKey: Int64]

    /// - Returns: Whether anything changed.
    func rewrite(_ change: inout StoredChange) throws -> Bool {
        var isChanged = false
        if let id = assigned[RecordKey(type: change.type, id: change.id)] {
            change.id = .integer(id)
            isChanged = true
        }
        let type = schema.types[change.type]
        guard let after = change.after, !type.references.isEmpty else { return isChanged }
        var attributes = try SyncCoder.decodeAttributes(after)
        var isRewritten = false
        for reference in type.references {
            guard let target = schema.index(of: reference.target),
                case .integer(let number)? = attributes[reference.attribute], number < 0,
                let id = assigned[RecordKey(type: target, id: .integer(number))]
            else { continue }
            attributes[reference.attribute] = .integer(id)
            isRewritten = true
        }
        if isRewritten { change.after = try SyncCoder.encode(attributes) }
        return isChanged || isRewritten
    }
}
