internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Puts the ids that records have got in place of those they had: in a change's own id and in its
/// references.
struct IDRewriter {
    let store: LocalStore
    /// What ids became: temporary ones permanent, or given ones temporary.
    let assigned: [RecordKey: Int64]

    /// - Returns: Whether anything changed.
    func rewrite(_ change: inout StoredChange) throws -> Bool {
        var isChanged = false
        if let id = assigned[change.key] {
            change.id = .integer(id)
            isChanged = true
        }
        // Which attributes of a type that is gone are references, nobody knows here; the server
        // resolves what stands in them.
        guard let type = change.type.map({ store.schema.types[$0] }), let after = change.after,
            !type.references.isEmpty
        else { return isChanged }
        var attributes = try SyncCoder.decodeAttributes(after)
        var isRewritten = false
        for reference in type.references {
            guard let target = store.schema.index(of: reference.target),
                case .integer(let number)? = attributes[reference.attribute],
                let id = assigned[RecordKey(type: store.numbers[target], id: .integer(number))]
            else { continue }
            attributes[reference.attribute] = .integer(id)
            isRewritten = true
        }
        if isRewritten { change.after = try SyncCoder.encode(attributes) }
        return isChanged || isRewritten
    }
}
