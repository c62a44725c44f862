/// The error of a file that is not accepted as a snapshot. Nothing of it was used.
package struct SnapshotError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable {
        /// It is no snapshot at all.
        case noSnapshot
        /// It is cut short, altered, or contradicts itself.
        case damaged
        /// A newer version of Martlet made it.
        case newer
        /// It is a snapshot, but not the one asked for: of another data set, part or revision.
        case other
    }

    package let kind: Kind
    /// What was expected, what was found, what to do. The message contains no values.
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    package var description: String { message }

    static func damaged(_ what: String) -> SnapshotError {
        SnapshotError(.damaged, "The snapshot is damaged (\(what)); fetch it again.")
    }
}
