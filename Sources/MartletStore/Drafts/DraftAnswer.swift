/// What a draft does about a change of its record.
public enum DraftAnswer: Hashable, Sendable {
    /// The store trumps, field by field: fields that change take the store's values, other unsaved
    /// edits stay. What had been typed into a field that changes stays readable as superseded.
    case take
    /// The edits stay, and will be saved on top of what the store has then. Fields not edited take
    /// the store's values.
    case keep
    /// The draft leaves the record as it is and becomes a new one when it is saved.
    case saveAsNew
}
