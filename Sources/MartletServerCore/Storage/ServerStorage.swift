package import MartletCore
public import MartletProtocol

/// Where a data set is kept: its tables, its log, and what Martlet remembers beside them.
///
/// The contract, the same for every storage:
/// - Calls are synchronous and made by one node at a time, in this order: `begin`; for each
///   request `device`, `usedSequence`, then `facts` → verdict → `apply` or `remember` for its
///   sets; `truths`; `commit`. Nothing of it can be seen by others before `commit` returns.
/// - Work comes in arrays, so that a storage behind a network needs few round trips. Facts hold
///   at the moment they are asked for; `apply` ends their validity for sets that share a record,
///   a reference or a device with the applied one.
/// - The revision comes from the data set's counter row, raised inside the transaction: revision
///   *r* is never visible before *r* - 1, and a number given back by a rollback is used again.
/// - `apply` does all of one set or, where it refuses, nothing of it.
/// - After any `StorageFault`, or a `commit` that threw, nothing of the transaction has happened;
///   `recover` brings the memory in line with what is stored, and the storage is usable again.
package protocol ServerStorage: AnyObject {
    var schema: Schema { get }
    /// How values and ids are judged.
    var checks: ValueChecks { get }
    /// The data set's identity.
    var identity: String { get }
    /// The newest revision, of the open transaction where there is one.
    var head: LogHead { get }
    /// Entries up to this revision may have lost their bodies; what they led to is in the tables.
    var floor: Revision { get }
    /// Every device known, by client id.
    var devices: [String: KnownDevice] { get }

    func begin() throws(StorageFault)
    func commit() throws(StorageFault)
    /// Rolls back what is open and reads the memory anew.
    func recover() throws(StorageFault)

    /// The device, registered for the principal where it is new.
    func device(
        clientID: String, principal: Principal, now: Int64
    ) throws(StorageFault) -> KnownDevice
    /// Notes that the device has stored the answers to its sets up to this one.
    func acknowledge(_ sequence: Int64, clientID: String) throws(StorageFault)
    /// The set a device numbered so; nil where it used the number for none.
    func usedSequence(_ sequence: Int64, device: Int64) throws(StorageFault) -> UsedSequence?

    /// Whether a set of that identifier has been accepted or finally refused.
    func isDecided(_ identifier: String) throws(StorageFault) -> Bool
    func facts(for questions: [SetQuestion]) throws(StorageFault) -> [SetFacts]
    /// Carries out one set that was judged acceptable.
    func apply(_ work: SetWork) throws(StorageFault) -> SetOutcome
    /// Keeps a final refusal.
    func remember(_ refusal: Refusal, of question: SetQuestion, now: Int64) throws(StorageFault)
    /// Raises the floor towards `target` within the open transaction, and empties the bodies of
    /// the entries it passes; those their authors have not acknowledged keep theirs until they do.
    /// Everything else of an entry stays.
    /// - Parameters:
    ///   - entries: The floor rises by so many at most.
    ///   - bytes: Bodies after which it stops; one entry is always passed.
    /// - Returns: How many entries were emptied.
    func compact(through target: Revision, entries: Int, bytes: Int) throws(StorageFault) -> Int
    /// The present state of the records the sets name, and of those their deletes would change:
    /// what exists under `update`, what does not under `delete`.
    /// - Parameter maxBytes: About how many bytes each may take on the wire; rows beyond are left
    ///   out.
    func truths(
        of questions: [TruthQuestion], maxBytes: Int
    ) throws(StorageFault) -> [[TypeChanges]]
}

/// The end of a data set's log.
public struct LogHead: Hashable, Sendable {
    public var revision: Revision
    /// The chained hash of the last entry.
    public var hash: LineageHash
}

/// A device the server has met.
package struct KnownDevice: Hashable, Sendable {
    package let number: Int64
    /// `Principal.identity` of whom the device is bound to.
    package let principal: String
    package var acknowledged: Int64
}

/// A set number that is taken.
package struct UsedSequence: Hashable, Sendable {
    package let identifier: String?
    package let content: [UInt8]
}

/// A change set whose facts are wanted.
package struct SetQuestion: Sendable {
    package let device: Int64
    package let principal: Principal
    package let identifier: String?
    package let sequence: Int64?
    package let dependency: String?
    /// SHA-256 of the set's bytes.
    package let content: [UInt8]
    /// The set read against the schema, or why it could not be.
    package let reading: Result<SetPlan, Refusal>

    package var plan: SetPlan? {
        if case .success(let plan) = reading { return plan }
        return nil
    }
}

/// A change set to carry out.
package struct SetWork: Sendable {
    package let question: SetQuestion
    package let plan: SetPlan
    package let facts: SetFacts
    /// The user's time, as sent.
    package let timestamp: String?
    /// Milliseconds since 1970.
    package let now: Int64
}

/// How carrying out a set ended.
package enum SetOutcome: Sendable {
    /// The entry, and the set it holds.
    case accepted(LogEntry, ChangeSet)
    case refused(Refusal)
}

/// A refused set whose truth is wanted.
package struct TruthQuestion: Sendable {
    package let device: Int64
    package let set: ChangeSet
}
