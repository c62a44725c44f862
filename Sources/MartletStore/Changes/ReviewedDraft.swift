/// A draft as the board sees it.
protocol ReviewedDraft: AnyObject, Sendable {
    /// Looks at the coming state of the record, before its commit.
    func review(_ context: ReadContext, causes: DatabaseChange.Causes)
    /// Accepts the reviewed state.
    func commit()
    /// Forgets the reviewed state.
    func rollBack()
}
