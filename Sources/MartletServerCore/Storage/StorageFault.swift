public import SQLiteKit

/// A storage that could not do its work; what was asked has not happened.
public struct StorageFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What stood in the way.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        /// Another program holds a lock.
        case busy
        /// No room on the disk.
        case full
        /// One set made the database roll back the whole transaction. After `recover` the batch
        /// can be done again; that set will then be refused.
        case rolledBack
        /// The tables are others than when the storage was opened, and nothing is written until it is
        /// opened again.
        case changed
        /// A part of the batch was refused outside the savepoints of its sets. Its requests are
        /// then carried out one by one.
        case refused
        /// The database cannot be reached.
        case unreachable
        /// Anything else: reading or writing failed, the file is damaged.
        case failed
    }

    public let kind: Kind
    /// What happened, for logs: without values.
    public let description: String

    public init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// What SQLite reported.
    public init(_ error: SQLiteError) {
        let kind: Kind = error.isBusy ? .busy : error.isDiskFull ? .full : .failed
        self.init(kind, error.description)
    }
}
