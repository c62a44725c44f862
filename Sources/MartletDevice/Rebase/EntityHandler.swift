public import MartletModel
internal import MartletProtocol
public import MartletStore
internal import SQLiteKit

/// A handler of remote change to the records of one entity type. It runs in the transaction that
/// applies the change.
///
/// By default a type's table takes the change, and no handler is needed. A handler for a type that
/// has a table runs after the table was changed, for example to update derived data. A handler for
/// a type without a table gets the records that would otherwise be kept aside for a later version
/// of the app.
///
/// It runs on the device's queue and must not wait. It may be called again for the same change, if
/// the transaction is rolled back or a record is fetched once more. The client does not send what
/// it writes through the context.
///
/// ```swift
/// struct TotalsHandler: EntityHandler {
///     func take(_ change: RemoteChange, in context: RemoteContext) throws {
///         let club = SQLValue.text(change.id.description)
///         try context.rows("UPDATE totals SET isStale = 1 WHERE club = ?", [club])
///     }
/// }
/// ```
public protocol EntityHandler: Sendable {
    /// Handles one change.
    /// - Throws: Any error. The change is then rolled back. If it fails again, the record is
    ///   quarantined with the error as the reason.
    func take(_ change: RemoteChange, in context: RemoteContext) throws
}

/// A change of one record by the server.
public struct RemoteChange: Hashable, Sendable {
    /// How much of the record the change holds.
    public enum Kind: String, Hashable, Sendable {
        /// `attributes` is the whole record; attributes that it does not name are null.
        case whole
        /// `attributes` holds the changed attributes.
        case part
        /// The record was deleted.
        case deleted
    }

    /// The entity type.
    public let type: String
    /// The record's id.
    public let id: RecordID
    /// How much of the record the change holds.
    public let kind: Kind
    /// The values; empty if the record was deleted. If the type has no table, binary data is base64
    /// text.
    public let attributes: RecordValues
    /// The revision of the change.
    public let revision: Revision
}

/// The access of a handler to the file, in the transaction that applies remote change.
public struct RemoteContext {
    private let store: LocalStore

    init(store: LocalStore) {
        self.store = store
    }

    /// Runs one statement, with values for its placeholders.
    /// - Returns: The rows, each as values by column.
    /// - Throws: `StoreError` if the statement fails.
    /// - Complexity: O(*n*) in the rows of the result.
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

/// The handlers of remote change, by entity type, for `ClientOptions.models`.
///
/// ```swift
/// var registry = ModelRegistry()
/// registry["matches"] = TotalsHandler()
/// ```
public struct ModelRegistry: Sendable {
    private var handlers: [String: any EntityHandler] = [:]

    /// Creates a registry without handlers.
    public init() {}

    /// The handler of an entity type; nil if its table alone takes the change.
    public subscript(type: String) -> (any EntityHandler)? {
        get { handlers[type] }
        set { handlers[type] = newValue }
    }

    package var isEmpty: Bool { handlers.isEmpty }
}
