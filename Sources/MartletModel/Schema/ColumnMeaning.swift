/// The meaning of a column's values when policies compare them, as far as the kind does not tell it.
package enum ColumnMeaning: Hashable, Sendable {
    /// The values compare as those of the kind do.
    case plain
    /// Days, as texts.
    case date
    /// UUIDs, as texts.
    /// - Parameter isCanonical: Whether every value is in PostgreSQL's form.
    case uuid(isCanonical: Bool)
    /// One of these texts. PostgreSQL orders them as they are listed.
    case enumeration([String])
    /// PostgreSQL compares the values in another way than policies do here: in words, with the remedy.
    case incomparable(words: String, remedy: String)
}
