public import MartletModel
internal import Synchronization

/// Unsaved edits of one record, such as those of a form.
///
/// The draft follows its record. When a change to the record, remote or by another save on this
/// device, is about to be committed, the draft first asks the handler that `onChange` set. Unless
/// the handler answers otherwise, the store's values win. No typed value is lost silently: values
/// that gave way are in `superseded`. If the record was deleted, the draft keeps its values, and
/// can be saved as a new record.
///
/// ```swift
/// let draft = try await client.draft(of: players, key)
/// draft.update { $0.name = "Ada" }
/// try await draft.save()
/// ```
public final class Draft<Element: ReadableRecord & Sendable>: Sendable {
    /// Answers a notice. The database calls it on its queue, inside the transaction that changes
    /// the record: be quick, and use only the notice.
    public typealias Handler = @Sendable (DraftNotice) -> DraftAnswer

    /// The result of a review in a transaction that has not ended.
    enum Reviewed: Sendable {
        case merge(DraftRecord<Element>, DraftAnswer, DraftReferences)
        case deletion(DraftAnswer)
        /// The draft's own save: the values when it was saved, and the record as the store has it.
        case save(saved: RecordValues, stored: DraftRecord<Element>?)
    }

    struct Held {
        var state: DraftState<Element>
        var reviewed: Reviewed?
        var handler: Handler?
        var listeners: [Int: AsyncStream<DraftNotice>.Continuation] = [:]
        var lastListener = 0
        /// The number of changes of the value.
        var version = 0
    }

    let held: Mutex<Held>
    let table: DraftTable<Element>
    let database: any DatabaseAccess
    /// Keeps the checks for external writes running while the draft is open.
    private let subscription: Subscription
    private let boardNumber = Mutex<Int?>(nil)
    private static var bufferedNotices: Int { 64 }

    init(_ record: DraftRecord<Element>, table: DraftTable<Element>, database: any DatabaseAccess) {
        held = Mutex(Held(state: DraftState(record)))
        self.table = table
        self.database = database
        subscription = Subscription(database._changes)
        // The draft itself waits for no change.
        _ = subscription.endReading(DatabaseRegion())
        let number = database._changes.drafts.add(self)
        boardNumber.withLock { $0 = number }
    }

    deinit {
        leave()
    }

    /// The record with the edits.
    public var value: Element { held.withLock { $0.state.value } }

    /// The record's key; nil if the draft will be saved as a new record.
    public var key: RecordID? {
        held.withLock { held in
            held.state.phase == .new ? nil : RecordID(held.state.base.key)
        }
    }

    /// The names of the columns whose values differ from the store's. It is empty if the record
    /// cannot express itself; `save()` throws the reason.
    public var editedFields: Set<String> {
        let state = held.withLock { $0.state }
        return Set((try? state.edits(table))?.names ?? [])
    }

    /// The typed values of fields that then took the store's value, by column name.
    public var superseded: RecordValues { held.withLock { $0.state.superseded } }

    /// Whether the record was deleted while the draft was open. Its values stay readable.
    public var isDeleted: Bool { held.withLock { $0.state.phase == .deleted } }

    /// Whether saving creates a new record.
    public var isNew: Bool { held.withLock { $0.state.phase == .new } }

    /// Edits the record. `body` may run again if the record changes while it runs.
    /// - Throws: The error of `body`; the draft is unchanged then.
    public func update(_ body: (inout Element) throws -> Void) rethrows {
        while true {
            let version: Int
            var value: Element
            (value, version) = held.withLock { ($0.state.value, $0.version) }
            try body(&value)
            let isDone = held.withLock { held in
                guard held.version == version else { return false }
                held.state.value = value
                held.version += 1
                return true
            }
            if isDone { return }
        }
    }

    /// Restores the values that were typed into fields which took the store's value afterwards.
    /// - Throws: `StoreError` `.value` if the record does not accept the values.
    public func restoreSuperseded() throws {
        try held.withLock { held in
            try held.state.value.fill(from: held.state.superseded)
            held.state.superseded = RecordValues()
            held.version += 1
        }
    }

    /// Discards the edits and ends the draft.
    public func discard() {
        held.withLock { held in
            held.state.phase = .discarded
            held.state.value = held.state.base.element
            held.version += 1
        }
        leave()
    }

    /// Sets the handler that is asked when the record is about to change. Without one, the store's
    /// values win.
    public func onChange(_ handler: @escaping Handler) {
        held.withLock { $0.handler = handler }
    }

    /// The notices from now on, for display; they need no answer. The stream ends with the draft.
    public var notices: AsyncStream<DraftNotice> {
        let (stream, continuation) = AsyncStream<DraftNotice>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.bufferedNotices))
        let number: Int? = held.withLock { held in
            guard held.state.phase != .discarded else { return nil }
            held.lastListener += 1
            held.listeners[held.lastListener] = continuation
            return held.lastListener
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.held.withLock { _ = $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    private func leave() {
        if let number = boardNumber.withLock({ $0 }) { database._changes.drafts.remove(number) }
        let listeners = held.withLock { held in
            defer { held.listeners.removeAll() }
            return Array(held.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
