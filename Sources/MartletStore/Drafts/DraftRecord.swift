/// A record as a draft sees it in the store.
struct DraftRecord<Element: Sendable>: Sendable {
    /// The key's value: permanent as soon as that is known.
    let key: SQLValue
    let element: Element
    /// What it expresses for its table, the key left out.
    let values: RecordValues
}
