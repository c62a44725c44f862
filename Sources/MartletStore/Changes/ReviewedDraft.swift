/// A draft as the board knows it.
protocol ReviewedDraft: AnyObject, Sendable {
    /// Looks at the record as it is about to be, and tells the draft's holder.
    func review(_ context: ReadContext, causes: DatabaseChange.Causes)
    /// Takes what was reviewed.
    func commit()
    /// Forgets what was reviewed.
    func rollBack()
}
