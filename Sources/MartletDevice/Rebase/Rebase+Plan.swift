internal import MartletModel
internal import MartletProtocol
internal import SQLiteKit

/// The work of a rebase, and the attempts to do it.
extension Rebase {
    /// The sets of an answer, and their counterparts in the queue.
    struct Plan {
        let sources: DataSources
        let sets: ArraySlice<ChangeSet>
        /// The sets of the queue that the answer names, by their identifiers.
        let own: [String: QueuedSet]
        /// The sequences of the sets whose verdicts it brings.
        let decided: Set<Int64>
        let current: Revision
        /// Whether any set of the queue waits for another answer.
        let hasWaiting: Bool

        var hasDifference: Bool { sources.hasStaged || sets.contains(where: \.isDifference) }
    }

    /// One attempt: the sets that it moves, and its way to write rows.
    struct Effort {
        /// The waiting sets to undo and redo; nil for all.
        var moving: Set<Int64>?
        var manner = RemoteApplier.ApplyMode()
        /// Whether rows of a snapshot are added. An own edit left in place may cause a refusal then.
        var isPart = false

        /// Returns the attempt after a failure; nil if there is none left.
        func next(after error: any Error, hasDifference: Bool) -> Effort? {
            let refused = error as? RefusedImage
            let error = refused?.cause ?? error
            var next = self
            next.moving = nil
            if moving != nil, Rebase.asksForAll(error) || isPart && ErrorLocation.isData(error) {
                // A set that was left in place turned out to block the answer, so all are moved.
                return next
            }
            next.manner.replaces = true
            if (error as? SQLiteError)?.isUniqueViolation == true, !manner.replaces {
                // Two rows exchange a unique value.
                return next
            }
            if refused != nil {
                next.manner.quarantinesImages = true
                return next
            }
            next.manner.isCareful = true
            return hasDifference && !manner.isCareful && ErrorLocation.isData(error) ? next : nil
        }
    }

    /// The error that a set could not be redone. Others may need it and share no record with it.
    struct NeedsAll: Error {}

    static func asksForAll(_ error: any Error) -> Bool {
        error is NeedsAll || (error as? SQLiteError)?.isUniqueViolation == true
    }
}
