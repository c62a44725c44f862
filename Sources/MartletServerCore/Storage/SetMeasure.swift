internal import MartletModel
import MartletProtocol

/// Bounds the work and the result of a set, in the same way for every storage.
package enum SetMeasure {
    /// Returns the refusal of a set whose entry has this many bytes; nil if every device can
    /// receive the entry.
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

    /// The most steps of SQLite's virtual machine that may be taken to find the facts of a set, or
    /// to carry it out. They take some seconds, in which the server decides for no other device.
    package static let mostSteps = 500_000_000

    /// The steps that each changed record adds to those taken for it. A storage that takes no steps
    /// on this machine reports no others.
    package static let stepsOfRecord = 2_500

    /// The share of a request that is decided before other users' requests have their turn.
    package struct Share: Hashable, Sendable {
        /// The steps after which the remaining sets of a request wait for its next one.
        package var mostSteps = SetMeasure.mostSteps
        /// The number of records from which a set is carried out alone, so that its steps can be
        /// measured.
        package var largeSet = 1_000
        /// The number of sets in a batch for which the effects of deletes are requested at once.
        package var mostFollowed = 4

        package init() {}
    }
}
