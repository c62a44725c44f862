public import MartletProtocol

/// What to do with edits that were not captured: somebody changed the file with the triggers gone
/// or turned off.
public enum CheckRepair: String, Hashable, Sendable {
    /// The server's rows take their place.
    case revert
    /// They become a change set of their own and are sent as any other edit.
    case capture
}

/// What a comparison of a device's data with the server's found, and what was done.
public struct CheckReport: Hashable, Sendable {
    /// Why a record was not as it should be.
    public enum Reason: String, Hashable, Sendable {
        /// The server has it, the device did not.
        case missing
        /// The device had it, the server has not.
        case extra
        /// The device had other values, and had missed a change.
        case different
        /// Only the revision the device remembered was wrong.
        case revision
        /// It was changed, inserted or deleted on the device without being captured.
        case uncaptured
    }

    /// What was done about it.
    public enum Outcome: String, Hashable, Sendable {
        /// The record is as the server has it, with the queued edits on top.
        case repaired
        /// What was not captured is a change set in the outbox now.
        case captured
    }

    /// A record that differed.
    public struct Finding: Hashable, Sendable {
        public let type: String
        public let id: RecordID
        public let reason: Reason
        public let outcome: Outcome
    }

    public internal(set) var findings: [Finding] = []
    /// Confirmed records that were compared.
    public internal(set) var recordCount = 0
    /// Types the server does not have.
    public internal(set) var unknownTypes: [String] = []
    /// Types of which part could not be compared: too much was changed meanwhile. Check again.
    public internal(set) var unfinishedTypes: [String] = []
    /// Whether capture was off or triggers of it were gone, and were made again.
    public internal(set) var isCaptureRestored = false
}
