/// The answer to a change of a draft's record.
public enum DraftAnswer: Hashable, Sendable {
    /// The store's values win, field by field: fields that change take them, and other unsaved
    /// edits stay. The typed values of fields that change stay readable in `superseded`.
    case take
    /// The edits stay, and will be saved on top of the store's values. Unedited fields take the
    /// store's values.
    case keep
    /// The draft leaves the record as it is, and becomes a new record when it is saved.
    case saveAsNew
}
