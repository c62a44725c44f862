public import MartletModel
package import MartletProtocol

/// Where a data set is kept: its tables, its log, and what Martlet remembers beside them.
///
/// The contract, the same for every storage:
/// - Calls are synchronous and made by one node at a time, in this order: `begin`; `devices` and
///   `register`; `facts` for the sets of the whole batch → verdicts → `apply` for those accepted,
///   `remember` for those refused; `truths`; `commit`. Nothing of it can be seen by others before
///   `commit` returns.
/// - Work comes in arrays, so that a storage behind a network needs few round trips. Facts hold
///   at the moment they are asked for; a set ends their validity for those behind it that share a
///   record, a reference, an identifier or a number with it, and `changesMore` for all of them.
/// - From `begin` to `commit` nobody else writes to the log, in whatever process. Other programs may
///   write to the tables at any time; what they wrote before `begin` is in the log when it returns.
/// - The revision comes from the data set's counter row, raised inside the transaction: revision
///   *r* is never visible before *r* - 1, and a number given back by a rollback is used again.
/// - `apply` does all of one set or, where it refuses, nothing of it.
/// - After any `StorageFault`, or a `commit` that threw, nothing of the transaction has happened;
///   `recover` brings the memory in line with what is stored, and the storage is usable again. Where
///   the outcome of a commit is not known, `recover` finds it out: `head` then says what is stored.
package protocol ServerStorage: AnyObject {
    var schema: Schema { get }
    /// How values and ids are judged.
    var checks: ValueChecks { get }
    /// The data set's identity.
    var identity: String { get }
    /// The newest revision: of the open transaction where there is one, else as of the last call
    /// that looked. Another process may have moved on.
    var head: LogHead { get }
    /// Entries up to this revision may have lost their bodies; what they led to is in the tables. As
    /// current as `head`.
    var floor: Revision { get }
    /// Takes what put sets off alone for reasons of the server's since it was last asked; for a log.
    func takeTrouble() -> StorageFault?
    /// Whether other processes write to the log too: what is known of it may be old.
    var isShared: Bool { get }
    /// The steps that finding facts and carrying sets out has taken so far on this machine.
    var steps: Int { get }

    /// Whether carrying a set out may change records that neither it nor its facts name, through
    /// triggers for instance: the sets behind it are then judged on facts asked for after it.
    func changesMore(_ work: SetWork) -> Bool

    /// Begins a transaction as the one writer of the data set.
    /// - Parameter maxBytes: Bytes of other programs' changes that are taken along; 0 takes none.
    /// - Returns: Entries made of what other programs wrote to the tables, one for each of their
    ///   transactions, within the open transaction. Ends after about `maxBytes`; the rest stands
    ///   in the way of no one but those records, or of everyone where `isExternalParted` says so.
    func begin(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry]
    /// Whether `begin` has left a rest of which `facts` would know nothing: then no set may be judged
    /// in this transaction.
    var isExternalParted: Bool { get }
    func commit() throws(StorageFault)
    /// Rolls back what is open and reads the memory anew.
    func recover() throws(StorageFault)
    /// What is new since the last look: outside a transaction, cheap enough for several times a
    /// second.
    func look() throws(StorageFault) -> StorageLook

    /// Those of the devices that are known, by client id.
    func devices(named: [String]) throws(StorageFault) -> [String: KnownDevice]
    /// Makes a device known that is not.
    /// - Parameter most: The most devices that the principal may have.
    /// - Returns: Nil if the principal has that many.
    func register(
        clientID: String, principal: Principal, most: Int, now: Int64
    ) throws(StorageFault) -> KnownDevice?
    /// Notes that the device has stored the answers to its sets up to this one.
    func acknowledge(_ sequence: Int64, clientID: String) throws(StorageFault)

    /// Whether a set of that identifier has been accepted or finally refused.
    func isDecided(_ identifier: String) throws(StorageFault) -> Bool
    func facts(for questions: [FactsRequest]) throws(StorageFault) -> [SetFacts]
    /// Carries out sets that were judged acceptable, in order.
    /// - Returns: How they ended. The first one that is refused is the last: those behind it were
    ///   not tried.
    func apply(_ works: [SetWork]) throws(StorageFault) -> [SetOutcome]
    /// Keeps a final refusal.
    func remember(_ refusal: Refusal, of question: FactsRequest, now: Int64) throws(StorageFault)
    /// Raises the floor towards `target` within the open transaction, and empties the bodies of
    /// the entries it passes; those their authors have not acknowledged keep theirs until they do.
    /// Everything else of an entry stays.
    /// - Parameters:
    ///   - entries: The floor rises by so many at most.
    ///   - bytes: Bodies after which it stops; one entry is always passed.
    /// - Returns: How many entries were emptied.
    func compact(through target: Revision, entries: Int, bytes: Int) throws(StorageFault) -> Int
    /// Returns the present state of the records that the sets name, and of those that their deletes
    /// would change: existing ones under `update`, missing ones under `delete`. A record that
    /// several sets name is read once.
    /// - Parameters:
    ///   - setBytes: The approximate bytes that the rows of one set may take on the wire; one
    ///     record always has room.
    ///   - maxBytes: The approximate bytes of all rows together; those of the first set are always
    ///     returned.
    /// - Returns: The rows for the first questions, as many as have room: at least one.
    func truths(
        of questions: [CurrentRowsRequest], setBytes: Int, maxBytes: Int
    ) throws(StorageFault) -> [SetTruth]
}

extension ServerStorage {
    package var steps: Int { 0 }
}

/// What a look at a storage found.
package struct StorageLook: Hashable, Sendable {
    /// The newest revision.
    package var head: LogHead
    package var floor: Revision
    /// Whether other programs have written to the tables what is not in the log yet.
    package var hasExternalWrites: Bool
    /// The state of the tables, which grows as tables and columns come and go; 0 where none do while
    /// the storage is open.
    package var tables: Int64
    /// Types whose tables another program has locked whole: they can be neither read nor written.
    package var locked: [String]

    package init(
        head: LogHead, floor: Revision, hasExternalWrites: Bool, tables: Int64 = 0,
        locked: [String] = []
    ) {
        self.locked = locked
        self.head = head
        self.floor = floor
        self.hasExternalWrites = hasExternalWrites
        self.tables = tables
    }
}

/// The end of a data set's log.
public struct LogHead: Hashable, Sendable {
    public var revision: Revision
    /// The chained hash of the last entry.
    public var hash: LineageHash

    package init(revision: Revision, hash: LineageHash) {
        self.revision = revision
        self.hash = hash
    }
}

/// A device the server has met.
package struct KnownDevice: Hashable, Sendable {
    package let number: Int64
    /// `Principal.identity` of whom the device is bound to.
    package let principal: String
    package var acknowledged: Int64

    package init(number: Int64, principal: String, acknowledged: Int64) {
        self.number = number
        self.principal = principal
        self.acknowledged = acknowledged
    }
}

/// A change set whose facts are wanted.
package struct FactsRequest: Sendable {
    package let device: Int64
    package let principal: Principal
    package let identifier: String?
    package let sequence: Int64?
    package let dependency: String?
    /// SHA-256 of the set's bytes.
    package let content: [UInt8]
    /// The set read against the schema, or why it could not be.
    package let reading: Result<SetPlan, Refusal>

    package init(
        device: Int64, principal: Principal, identifier: String?, sequence: Int64?,
        dependency: String?, content: [UInt8], reading: Result<SetPlan, Refusal>
    ) {
        self.device = device
        self.principal = principal
        self.identifier = identifier
        self.sequence = sequence
        self.dependency = dependency
        self.content = content
        self.reading = reading
    }

    /// The question without the set's content: what was decided before is all that is found.
    var withoutPlan: FactsRequest {
        FactsRequest(
            device: device, principal: principal, identifier: identifier, sequence: sequence,
            dependency: dependency, content: content,
            reading: .failure(Refusal(.invalid, "the set was not looked at")))
    }

    package var plan: SetPlan? {
        if case .success(let plan) = reading { return plan }
        return nil
    }
}

/// A change set to carry out.
package struct SetWork: Sendable {
    package let question: FactsRequest
    package let plan: SetPlan
    package let facts: SetFacts
    /// The user's time, as sent.
    package let timestamp: String?
    /// Milliseconds since 1970.
    package let now: Int64

    package init(
        question: FactsRequest, plan: SetPlan, facts: SetFacts, timestamp: String?, now: Int64
    ) {
        self.question = question
        self.plan = plan
        self.facts = facts
        self.timestamp = timestamp
        self.now = now
    }
}

/// How carrying out a set ended.
package enum SetOutcome: Sendable {
    /// The entry, and the set it holds.
    case accepted(LogEntry, ChangeSet)
    case refused(Refusal)
}

/// A refused set whose truth is wanted.
package struct CurrentRowsRequest: Sendable {
    package let device: Int64
    package let set: ChangeSet

    package init(device: Int64, set: ChangeSet) {
        self.device = device
        self.set = set
    }
}

extension ServerStorage {
    package func takeTrouble() -> StorageFault? { nil }
}
