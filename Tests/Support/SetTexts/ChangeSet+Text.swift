package import MartletModel
package import MartletProtocol

extension ChangeSet {
    /// What became of a set that was sent: a revision, or a reason.
    package var fate: String { revision.map { "accepted \($0)" } ?? reason?.rawValue ?? "none" }

    /// The truth beside a refusal or the content of an entry, as text.
    package var content: String { types.map(\.content).joined(separator: "; ") }

    /// The changes of one type.
    package subscript(type: String) -> TypeChanges? { types.first { $0.name == type } }
}

extension TypeChanges {
    /// The changes as text: the type, the records by operation, and what each of them got.
    package var content: String {
        let records = entries.map { entry in
            let values = zip(entry.attributes.names, entry.attributes.values)
                .map { "\($0)=\($1.short)" }
            return "\(entry.id)@\(entry.revision ?? -1)(\(values.joined(separator: " ")))"
        }
        var parts = [name]
        if !create.isEmpty { parts.append("create \(create)") }
        if !update.isEmpty { parts.append("update \(update)") }
        if !delete.isEmpty { parts.append("delete \(delete)") }
        return (parts + records).joined(separator: " ")
    }
}

extension Value {
    /// As a person would write it.
    package var short: String {
        switch self {
        case .null: "null"
        case .boolean(let flag): "\(flag)"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): text
        }
    }
}
