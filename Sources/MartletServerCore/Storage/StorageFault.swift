/// The error of a storage that could not do its work. The requested change has not happened.
package struct StorageFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of obstacle.
    package enum Kind: String, CaseIterable, Hashable, Sendable {
        /// Another program holds a lock.
        case busy
        /// There is no room on the disk.
        case full
        /// One set made the database roll back the whole transaction. After `recover` the batch can
        /// be repeated; that set is then refused.
        case rolledBack
        /// The tables differ from those that were opened. Nothing is written until the storage is
        /// reopened.
        case changed
        /// A part of the batch was refused outside the savepoints of its sets. Its requests are
        /// then carried out one by one.
        case refused
        /// The database cannot be reached.
        case unreachable
        /// The data set's file was removed or replaced while it was open.
        case moved
        /// Any other failure: reading or writing failed, or the file is damaged.
        case failed
    }

    package let kind: Kind
    /// A text about the failure, for logs, without values.
    package let description: String

    /// Makes a fault.
    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// The fault of a file that is open and no longer at its path.
    package static let moved = StorageFault(
        .moved,
        """
        The data set's file was removed or replaced while the server had it open. The server puts off \
        all writes to it. Put the file back, or stop the server and restore a backup.
        """)
}
