public import MartletModel

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
        /// The record was not captured, and no change set can carry it. The table still shows it, and
        /// `MartletClient.withheld()` lists it.
        case withheld
    }

    /// A record that differed.
    public struct Finding: Hashable, Sendable {
        public let type: String
        public let id: RecordID
        public let reason: Reason
        public internal(set) var outcome: Outcome
    }

    /// A row with a key that no set can carry: it took no part, is not sent, and stays as it is.
    public struct UnreadableRow: Hashable, Sendable {
        /// The entity type.
        public let type: String
        /// The bytes of the key, in hexadecimal digits.
        public let key: String
        /// The reason why the key cannot be read.
        public let message: String
    }

    public internal(set) var findings: [Finding] = []
    /// Confirmed records that were compared.
    public internal(set) var recordCount = 0
    /// Types the server does not have.
    public internal(set) var unknownTypes: [String] = []
    /// Types of which part could not be compared: too much was changed meanwhile. Check again.
    public internal(set) var unfinishedTypes: [String] = []
    /// Rows whose keys are not UTF-8. Delete each, and insert it under another key.
    public internal(set) var unreadable: [UnreadableRow] = []
    /// Whether capture was off or triggers of it were gone, and were made again.
    public internal(set) var isCaptureRestored = false

    package init() {}
}
