internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Replaces the former ids of records with their present ones, in a change's own id and in its
/// references.
struct IDRewriter {
    let store: LocalStore
    /// The new id of each renamed record: permanent for a temporary one, or temporary for a
    /// permanent one.
    let assigned: [RecordKey: Int64]

    /// Rewrites one change.
    /// - Returns: Whether anything changed.
    func rewrite(_ change: inout StoredChange) throws -> Bool {
        var isChanged = false
        if let id = assigned[change.key] {
            change.id = .integer(id)
            isChanged = true
        }
        // If the type is gone, the schema does not say which attributes are references. The server
        // resolves the ids in them.
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
