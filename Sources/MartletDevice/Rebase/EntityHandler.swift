public import MartletModel
internal import MartletProtocol
public import MartletStore
internal import SQLiteKit

/// Hears of remote change to the records of one entity type, as part of the transaction that takes
/// it in.
///
/// The default for a type is its table, and no handler is needed for it. A handler for a type that
/// has a table runs after the table was changed: to keep something derived in step. A handler for
/// a type without a table gets what would otherwise be kept aside for a later version of the app.
///
/// It runs on the device's queue and must not wait. It may be called again for the same change:
/// when the transaction is rolled back, and when a record is fetched once more. What it writes
/// through the context is not sent.
public protocol EntityHandler: Sendable {
    /// - Throws: Anything; the change is then rolled back, and if it fails again the record is
    ///   quarantined with the error as the reason.
    func take(_ change: RemoteChange, in context: RemoteContext) throws
}

/// What happened to one record, as the server tells.
public struct RemoteChange: Hashable, Sendable {
    /// What is known of the record.
    public enum Kind: String, Hashable, Sendable {
        /// `attributes` is the whole record; what it does not name is null.
        case whole
        /// `attributes` is what changed.
        case part
        /// The record is gone.
        case deleted
    }

    /// The entity type.
    public let type: String
    public let id: RecordID
    public let kind: Kind
    public let attributes: Attributes
    /// The revision of the change.
    public let revision: Revision
}

/// What a handler can do, in the transaction that takes remote change in.
public struct RemoteContext {
    private let store: LocalStore

    init(store: LocalStore) {
        self.store = store
    }

    /// Runs one statement, with values for its placeholders.
    /// - Returns: The rows, each as values by column.
    /// - Throws: `StoreError`.
    @discardableResult
    public func rows(_ sql: String, _ values: [SQLValue] = []) throws -> [[SQLValue]] {
        do {
            let context = WriteContext(session: Session(store: store), randomBits: { 0 })
            defer { context.end() }
            return try context.rows(sql, values).map(\.values)
        } catch {
            throw StoreError.of(error)
        }
    }
}

@available(*, unavailable)
extension RemoteContext: Sendable {}

/// Which handler takes in the remote change of which entity type.
public struct ModelRegistry: Sendable {
    private var handlers: [String: any EntityHandler] = [:]

    public init() {}

    /// The handler of an entity type; nil: its table alone.
    public subscript(type: String) -> (any EntityHandler)? {
        get { handlers[type] }
        set { handlers[type] = newValue }
    }

    package var isEmpty: Bool { handlers.isEmpty }
}
