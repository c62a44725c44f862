internal import Synchronization

/// The open drafts of one database. Code that commits changes lets the drafts review them first.
package final class DraftBoard: Sendable {
    private struct Entry {
        weak var draft: (any ReviewedDraft)?
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var last = 0
    }

    private let state = Mutex(State())

    init() {}

    /// Whether no draft is open.
    package var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    /// Adds a draft, which must remove itself when it ends.
    /// - Returns: The draft's number.
    func add(_ draft: any ReviewedDraft) -> Int {
        state.withLock { state in
            state.last += 1
            state.entries[state.last] = Entry(draft: draft)
            return state.last
        }
    }

    func remove(_ number: Int) {
        _ = state.withLock { $0.entries.removeValue(forKey: number) }
    }

    private var drafts: [any ReviewedDraft] {
        state.withLock { state in
            guard !state.entries.isEmpty else { return [] }
            return state.entries.sorted { $0.key < $1.key }.compactMap(\.value.draft)
        }
    }

    /// Lets each draft look at the coming state of its record. Call it last in the transaction.
    /// - Parameter context: A context that sees the changes before their commit.
    package func review(_ context: ReadContext, causes: DatabaseChange.Causes) {
        for draft in drafts { draft.review(context, causes: causes) }
    }

    /// Informs the drafts that the reviewed changes were committed.
    package func commit() {
        for draft in drafts { draft.commit() }
    }

    /// Informs the drafts that the reviewed changes were rolled back.
    package func rollBack() {
        for draft in drafts { draft.rollBack() }
    }

    /// Informs the drafts of changes that another connection has already committed.
    package func catchUp(_ context: ReadContext, causes: DatabaseChange.Causes) {
        review(context, causes: causes)
        commit()
    }
}
