/// What becomes of TRUNCATE on a synchronised table.
package enum Truncation: String, Hashable, Sendable, CaseIterable {
    /// It fails, with a sentence.
    case refuse
    /// All rows are deleted on devices too.
    case delete
}

extension Truncation {
    /// What the triggers do.
    var triggers: ForeignTriggers.Truncation {
        switch self {
        case .refuse: .refused
        case .delete: .deletes
        }
    }
}
