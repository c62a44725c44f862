/// A record of the store, as a draft sees it.
struct DraftRecord<Element: Sendable>: Sendable {
    /// The key's value; it is the permanent id as soon as that is known.
    let key: SQLValue
    let element: Element
    /// The values that the record expresses for its table, without the key.
    let values: RecordValues
}
