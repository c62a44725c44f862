public import Foundation

/// The reason why a draft cannot be saved.
public struct DraftError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A kind of refusal; new kinds may be added.
    public struct Kind: Hashable, Sendable {
        let name: String

        /// The record no longer exists: another save or device has deleted it.
        public static let recordGone = Kind(name: "recordGone")
        /// The draft was discarded.
        public static let discarded = Kind(name: "discarded")
    }

    /// The kind of refusal.
    public let kind: Kind
    /// A message that says what was expected, what was found, and what to do. It holds no values.
    public let message: String

    public var description: String { message }

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    static func recordGone(_ table: String) -> DraftError {
        DraftError(
            .recordGone,
            "The record of “\(table)” that was being edited has been deleted. What was typed is"
                + " still in the draft: save it as a new record (`saveAsNew()`), or discard it.")
    }

    static func discarded(_ table: String) -> DraftError {
        DraftError(
            .discarded,
            "The draft of a record of “\(table)” was discarded; open another to edit the record.")
    }
}

extension DraftError: LocalizedError {
    /// The message; it holds no values.
    public var errorDescription: String? { message }
}
