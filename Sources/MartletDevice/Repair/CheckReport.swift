public import MartletModel

/// The treatment of edits that were not captured, because another program changed the file with the
/// triggers gone or turned off.
public enum CheckRepair: String, Hashable, Sendable {
    /// The server's rows replace them.
    case revert
    /// They become a change set of their own and are sent like any other edit.
    case capture
}

/// The result of comparing a device's data with the server's, with the repairs.
///
/// ```swift
/// for finding in report.findings {
///     print(finding.type, finding.id, finding.reason, finding.outcome)
/// }
/// ```
public struct CheckReport: Hashable, Sendable {
    /// The kind of a difference.
    public enum Reason: String, Hashable, Sendable {
        /// The server has the record, and the device did not.
        case missing
        /// The device had the record, and the server does not.
        case extra
        /// The device had other values, because it had missed a change.
        case different
        /// Only the revision that the device had stored was wrong.
        case revision
        /// The record was changed, inserted or deleted on the device without being captured.
        case uncaptured
    }

    /// The treatment of a difference.
    public enum Outcome: String, Hashable, Sendable {
        /// The record is as the server has it, with the queued edits on top.
        case repaired
        /// The edit that was not captured is a change set in the outbox now.
        case captured
        /// The record was not captured, and no change set can carry it. The table still shows it,
        /// and `MartletClient.withheld()` lists it.
        case withheld
    }

    /// A record that differed.
    public struct Finding: Hashable, Sendable {
        /// The entity type.
        public let type: String
        /// The record's id.
        public let id: RecordID
        /// The kind of the difference.
        public let reason: Reason
        /// The treatment of the difference.
        public internal(set) var outcome: Outcome
    }

    /// A row with a key that no set can carry. It is not compared and not sent, and it stays as it
    /// is.
    public struct UnreadableRow: Hashable, Sendable {
        /// The entity type.
        public let type: String
        /// The bytes of the key, in hexadecimal digits.
        public let key: String
        /// The reason why the key cannot be read.
        public let message: String
    }

    /// The records that differed.
    public internal(set) var findings: [Finding] = []
    /// The number of confirmed records that were compared.
    public internal(set) var recordCount = 0
    /// The types that the server does not have.
    public internal(set) var unknownTypes: [String] = []
    /// The types of which part could not be compared, because too much was changed meanwhile. Check
    /// again.
    public internal(set) var unfinishedTypes: [String] = []
    /// The rows whose keys are not UTF-8. Delete each, and insert it under another key.
    public internal(set) var unreadable: [UnreadableRow] = []
    /// Whether capture was off or some of its triggers were gone, and the check restored them.
    public internal(set) var isCaptureRestored = false

    package init() {}
}
