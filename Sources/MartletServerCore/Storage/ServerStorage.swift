package import MartletModel
package import MartletProtocol
package import MartletRules

/// The storage of a data set: its tables, its log, and the facts that Martlet keeps next to them.
///
/// The contract is the same for every storage:
///
/// - One node at a time makes the calls, which are synchronous, in this order: `begin`; `devices`
///   and `register`; `facts` for the sets of the whole batch → verdicts → `apply` for the accepted
///   ones, `remember` for the refused ones; `truths`; `commit`. No other connection sees any of it
///   before `commit` returns.
/// - Calls take arrays, so that a storage behind a network needs few round trips. Facts hold at the
///   moment of the call. A set ends their validity for later sets that share a record, a reference,
///   an identifier or a number with it, and, if `changesMore` is true, for all later sets.
/// - From `begin` to `commit`, no other process writes to the log. Other programs may write to the
///   tables at any time; the log has their writes from before `begin` when it returns.
/// - The revision comes from the data set's counter row, which is raised inside the transaction.
///   Revision *r* is never visible before *r* - 1, and a number that a rollback gave back is used
///   again.
/// - `apply` does all of a set or, if it refuses the set, nothing of it.
/// - After any `StorageFault`, or a `commit` that threw, nothing of the transaction has happened.
///   `recover` brings memory in line with the stored state, and the storage is usable again. If the
///   outcome of a commit is not known, `recover` finds it out, and `head` is then the stored one.
package protocol ServerStorage: AnyObject {
    var schema: Schema { get }
    /// The checks of values and ids.
    var checks: ValueChecks { get }
    /// The data set's identity.
    var identity: String { get }
    /// The newest revision: of the open transaction if there is one, or else of the last call that
    /// read it. Another process may have raised it since.
    var head: LogHead { get }
    /// The revision up to which entries may have lost their bodies. Their results are in the
    /// tables. It is as current as `head`.
    var floor: Revision { get }
    /// Returns, for a log, the fault that put single sets off for a reason of the server's, and
    /// forgets it; nil if there was none since the last call.
    func takeTrouble() -> StorageFault?
    /// True if other processes write to the log too, so that the values here may be behind it.
    var isShared: Bool { get }
    /// The steps on this machine that the search for facts and the changes of sets have taken so
    /// far.
    var steps: Int { get }

    /// Returns whether a set, when carried out, may change records that neither it nor its facts
    /// name, for example through triggers. The sets behind it are then judged on facts requested
    /// after it.
    func changesMore(_ work: SetWork) -> Bool

    /// Begins a transaction as the one writer of the data set.
    ///
    /// - Parameter maxBytes: The approximate bytes of external changes after which it takes no
    ///   more; 0 takes none. The rest blocks only sets that touch its records, or every set if
    ///   `isExternalParted`.
    /// - Returns: The entries, within the open transaction, that were made from external writes to
    ///   the tables. A storage that knows the external transactions makes one entry for each, or
    ///   several if it is large.
    func begin(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry]
    /// True if `begin` has left changes that `facts` would not know. Then no set may be judged in
    /// this transaction.
    var isExternalParted: Bool { get }
    func commit() throws(StorageFault)
    /// Rolls back an open transaction, and reads the storage's state again.
    func recover() throws(StorageFault)
    /// Returns the changes since the last look. It is called outside a transaction, and is cheap
    /// enough for several times a second.
    func look() throws(StorageFault) -> StorageLook

    /// Returns the known ones of the devices, by client id.
    func devices(named: [String]) throws(StorageFault) -> [String: KnownDevice]
    /// Registers a device that is not known.
    ///
    /// - Parameter most: The most devices that the principal may have.
    /// - Returns: Nil if the principal has that many.
    func register(
        clientID: String, principal: Principal, most: Int, now: Int64
    ) throws(StorageFault) -> KnownDevice?
    /// Notes that the device has stored the answers to its sets up to this one.
    func acknowledge(_ sequence: Int64, clientID: String) throws(StorageFault)

    /// Returns whether a set with that identifier has been accepted or finally refused.
    func isDecided(_ identifier: String) throws(StorageFault) -> Bool
    func facts(for requests: [FactsRequest]) throws(StorageFault) -> [SetFacts]
    /// Returns rows for conditions of policies: of a type, those whose column has one of the values, or
    /// all if `values` is nil. It may return more, and it leaves out rows that no device can receive.
    ///
    /// - Parameters:
    ///   - type: The position of the type in the schema.
    ///   - column: The column, by its position in a `RuleRow`.
    ///   - values: Integers or texts.
    func rows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(StorageFault) -> [RuleRow]
    /// The tables of views.
    var views: any ViewStorage { get }
    /// Carries out sets that were judged acceptable, in order. A set whose rows its `rights` do not
    /// allow is refused.
    ///
    /// - Returns: Their outcomes. The first refusal is the last outcome, because the sets behind it
    ///   were not tried.
    func apply(_ works: [SetWork]) throws(StorageFault) -> [SetOutcome]
    /// Stores a final refusal.
    func remember(_ refusal: Refusal, of request: FactsRequest, now: Int64) throws(StorageFault)
    /// Raises the floor towards `target` within the open transaction, and empties the bodies of the
    /// entries that it passes. An entry that its author has not acknowledged keeps its body until
    /// then. Everything else of an entry stays.
    ///
    /// - Parameters:
    ///   - entries: The most entries by which the floor rises.
    ///   - bytes: The bytes of bodies after which it stops; it always passes one entry.
    /// - Returns: The number of entries that were emptied.
    func compact(through target: Revision, entries: Int, bytes: Int) throws(StorageFault) -> Int
    /// Returns the present state of the records that the sets name, and of those that their deletes
    /// would change: existing ones under `update`, missing ones under `delete`. A record that
    /// several sets name is read once.
    ///
    /// A record that the sender may not see is one that does not exist. Deletes are followed only from
    /// records that he sees, through records that he sees.
    ///
    /// - Parameters:
    ///   - setBytes: The approximate bytes that the rows of one set may take on the wire. One
    ///     record always has room.
    ///   - maxBytes: The approximate bytes of all rows together. Those of the first set are always
    ///     returned.
    /// - Returns: The rows for the first requests, as many as have room, and at least one.
    func truths(
        of requests: [CurrentRowsRequest], setBytes: Int, maxBytes: Int
    ) throws(StorageFault) -> [SetTruth]
}

extension ServerStorage {
    package var steps: Int { 0 }
}

/// The result of a look at a storage.
package struct StorageLook: Hashable, Sendable {
    /// The newest revision.
    package var head: LogHead
    package var floor: Revision
    /// True if there are external writes to the tables that are not in the log yet.
    package var hasExternalWrites: Bool
    /// A number for the state of the tables, which is another one if they are no longer as they were
    /// opened; 0 for a file with all tables and columns that were opened.
    package var tables: Int64
    /// The types whose tables another program has locked whole, against reading and writing.
    package var locked: [String]
    /// Whether another server of the data set has other policies than this one.
    package var hasOtherPolicies: Bool

    package init(
        head: LogHead, floor: Revision, hasExternalWrites: Bool, tables: Int64 = 0,
        locked: [String] = [], hasOtherPolicies: Bool = false
    ) {
        self.locked = locked
        self.hasOtherPolicies = hasOtherPolicies
        self.head = head
        self.floor = floor
        self.hasExternalWrites = hasExternalWrites
        self.tables = tables
    }
}

/// The end of a data set's log.
package struct LogHead: Hashable, Sendable {
    package var revision: Revision
    /// The chained hash of the last entry.
    package var hash: LineageHash

    package init(revision: Revision, hash: LineageHash) {
        self.revision = revision
        self.hash = hash
    }
}

/// A device that the server has met.
package struct KnownDevice: Hashable, Sendable {
    package let number: Int64
    /// The `Principal.identity` to which the device is bound.
    package let principal: String
    package var acknowledged: Int64

    package init(number: Int64, principal: String, acknowledged: Int64) {
        self.number = number
        self.principal = principal
        self.acknowledged = acknowledged
    }
}

/// A request for the facts about a change set.
package struct FactsRequest: Sendable {
    package let device: Int64
    package let principal: Principal
    package let identifier: String?
    package let sequence: Int64?
    package let dependency: String?
    /// The SHA-256 of the set's bytes.
    package let content: [UInt8]
    /// The set read against the schema, or the refusal if that failed.
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

    /// The same request without the set's content. It finds only the earlier decisions.
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
    package let request: FactsRequest
    package let plan: SetPlan
    package let facts: SetFacts
    /// The judgement by the data set's policies; nil if it has none.
    package let rights: SetRights?
    /// Why the set is refused if its rights allow it; nil if it is to be carried out.
    package let refusal: Refusal?
    /// The user's time, as the device sent it.
    package let timestamp: String?
    /// Milliseconds since 1970.
    package let now: Int64

    package init(
        request: FactsRequest, plan: SetPlan, facts: SetFacts, rights: SetRights? = nil,
        refusal: Refusal? = nil, timestamp: String?, now: Int64
    ) {
        self.request = request
        self.plan = plan
        self.facts = facts
        self.rights = rights
        self.refusal = refusal
        self.timestamp = timestamp
        self.now = now
    }

    /// Returns why a set is refused that the tables do not take.
    ///
    /// PostgreSQL judges the rights to a new row before its unique values and references. So a set that
    /// its rights do not allow is refused for that, and nobody learns by it which values and ids hidden
    /// records have.
    ///
    /// - Parameter judged: Returns why the rights do not allow the set; nil if they do.
    package func refusal<Fault: Error>(
        after refusal: Refusal, _ judged: (SetRights) throws(Fault) -> Refusal?
    ) throws(Fault) -> Refusal {
        // These are not about the tables, or were judged by the rights already.
        guard let rights, !refusal.isRetryable, refusal.reason != .permission else {
            return refusal
        }
        return try judged(rights) ?? refusal
    }
}

/// The outcome of a set that was carried out.
package enum SetOutcome: Sendable {
    /// The set was accepted, with its entry and its content.
    case accepted(LogEntry, ChangeSet)
    case refused(Refusal)
}

/// A request for the truth of a refused set.
package struct CurrentRowsRequest: Sendable {
    package let device: Int64
    package let set: ChangeSet
    /// The sender's rights to rows; nil if the data set has no policies.
    package let rights: RowRights?

    package init(device: Int64, set: ChangeSet, rights: RowRights? = nil) {
        self.device = device
        self.set = set
        self.rights = rights
    }
}

extension ServerStorage {
    package func takeTrouble() -> StorageFault? { nil }
}
