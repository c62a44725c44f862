internal import MartletModel
import MartletProtocol

/// Bounds the work and the result of a set, in the same way for every storage.
package enum SetMeasure {
    /// Returns the refusal of a set whose entry has this many bytes; nil if every device can take
    /// the entry.
    package static func refusal(ofEntryBytes count: Int) -> Refusal? {
        guard count > Limits.entryBytes else { return nil }
        return Refusal(
            .invalid,
            """
            the set comes to more than \(Limits.entryBytes >> 20) MiB with what the database adds \
            to it, the most that a device can be sent at once; make it in several smaller sets
            """)
    }

    /// The most records that the deletes of one set may change by ON DELETE actions.
    package static let mostAffected = 1_000_000

    /// The most steps of SQLite's machine to find the facts of one set or to carry it out: some
    /// seconds, during which no other device is answered.
    package static let mostSteps = 500_000_000

    /// The steps that a changed record counts beside those that were taken for it; a storage that takes none
    /// on this machine tells of no others.
    package static let stepsOfRecord = 2_500

    /// How much of a request is done before other people's requests come in between.
    package struct Share: Hashable, Sendable {
        /// The steps after which the other sets of a request wait for its next one.
        package var mostSteps = SetMeasure.mostSteps
        /// The records from which a set is carried out alone, so that the steps for it can be told.
        package var largeSet = 1_000
        /// The sets of a batch of which it is known at once what their deletes lead to.
        package var mostFollowed = 4

        package init() {}
    }
}
