internal import Synchronization

/// The open drafts of one database. Whoever commits changes has them reviewed first.
package final class DraftBoard: Sendable {
    private struct Place {
        weak var draft: (any ReviewedDraft)?
    }

    private struct State {
        var places: [Int: Place] = [:]
        var last = 0
    }

    private let state = Mutex(State())

    init() {}

    /// Whether no draft is open.
    package var isEmpty: Bool { state.withLock { $0.places.isEmpty } }

    /// Adds a draft; it gives its place back when it goes.
    func add(_ draft: any ReviewedDraft) -> Int {
        state.withLock { state in
            state.last += 1
            state.places[state.last] = Place(draft: draft)
            return state.last
        }
    }

    func remove(_ number: Int) {
        _ = state.withLock { $0.places.removeValue(forKey: number) }
    }

    private var drafts: [any ReviewedDraft] {
        state.withLock { state in
            guard !state.places.isEmpty else { return [] }
            return state.places.sorted { $0.key < $1.key }.compactMap(\.value.draft)
        }
    }

    /// Tells each draft whose record is about to be changed. Call it last in the transaction.
    /// - Parameter context: Sees what is about to be committed.
    package func review(_ context: ReadContext, causes: DatabaseChange.Causes) {
        for draft in drafts { draft.review(context, causes: causes) }
    }

    /// What was reviewed has been committed.
    package func commit() {
        for draft in drafts { draft.commit() }
    }

    /// What was reviewed was rolled back.
    package func rollBack() {
        for draft in drafts { draft.rollBack() }
    }

    /// Tells the drafts of what others have committed already.
    package func catchUp(_ context: ReadContext, causes: DatabaseChange.Causes) {
        review(context, causes: causes)
        commit()
    }
}
