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
        /// The data set's file was removed or replaced while it was open.
        case moved
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

    /// The file that is open is no longer the one under its path.
    package static let moved = StorageFault(
        .moved,
        """
        The data set's file was removed or replaced while the server had it open. The server puts off \
        all writes to it. Put the file back, or stop the server and restore a backup.
        """)
}
