package import MartletModel
internal import MartletProtocol
package import MartletRules
package import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// A data set in one SQLite file: the storage of a small team's server.
///
/// One process writes the file. It is in WAL mode with `synchronous=FULL`, so a commit that
/// returned survives a loss of power.
///
/// ```swift
/// let store = try EmbeddedStore(
///     path: "/srv/martlet/club.sqlite", script: script, identity: identity,
///     now: Int64(Date.now.timeIntervalSince1970 * 1_000))
/// let node = try DataSetNode(store: store)
/// ```
package final class EmbeddedStore {
    /// The greatest key of an external row after which the server continues. Half of all keys are
    /// above it, so that an external write cannot take the last key from new records.
    package static let greatestFollowedKey = Limits.greatestKey / 2

    package let schema: Schema
    package let identity: String
    package let checks = ValueChecks(
        value: { value, attribute, _ in RecordTable.mismatch(value, attribute) },
        id: { RecordTable.mismatch($0, $1) })
    let path: String
    let vfs: String?
    let unsendable: UnsendableRows
    /// The open session; nil after a fault, until `recover` has opened the file again.
    private var current: EmbeddedSession?
    /// The refusals of sets that made the database roll back more than themselves, by the sets'
    /// content.
    private var unbearable: [[UInt8]: Refusal] = [:]
    /// The limit is higher than the number of sets in a batch, so that no set of a batch is
    /// forgotten while the batch is repeated.
    private static let mostUnbearable = 100_000

    /// Opens a file, creates its missing parts, and brings its tables to the script.
    ///
    /// Rows from before Martlet knows their table become entries of the log, so that devices
    /// receive them.
    ///
    /// - Parameters:
    ///   - script: The CREATE statements, or nil to take the tables as they are.
    ///   - identity: The name of the data set if it is created: 32 random hexadecimal digits.
    ///   - now: Milliseconds since 1970.
    ///   - unsendable: Notes rows that are left out.
    /// - Throws: `SchemaError` if the script or the tables cannot be synchronised; `StorageFault`.
    package init(
        path: String, vfs: String? = nil, script: String?, identity: String, now: Int64,
        unsendable: UnsendableRows = UnsendableRows()
    ) throws {
        precondition(
            !identity.isEmpty && identity.utf8.count <= Limits.nameBytes
                && identity.utf8.allSatisfy { (48...57).contains($0) || (97...122).contains($0) },
            "an identity is lower-case letters and digits")
        self.path = path
        self.vfs = vfs
        self.unsendable = unsendable
        do {
            let opening = try EmbeddedOpening(path: path, vfs: vfs)
            schema = try opening.prepare(script: script, identity: identity, now: now)
            let session = try EmbeddedSession(
                connection: opening.connection, schema: schema, unsendable: unsendable)
            self.identity = session.identity
            current = session
        } catch let error as SQLiteError where error.isConstraint {
            throw StorageFault(.refused, error.description)
        } catch let error as SQLiteError {
            throw StorageFault(error)
        }
    }

    func session() throws(StorageFault) -> EmbeddedSession {
        guard let current else {
            throw StorageFault(.failed, "the file is not open after an earlier fault")
        }
        return current
    }

    /// Runs `body` on the open session. An error of SQLite becomes a fault.
    func working<Result>(
        _ body: (EmbeddedSession) throws(SQLiteError) -> Result
    ) throws(StorageFault) -> Result {
        let session = try session()
        do throws(SQLiteError) {
            return try body(session)
        } catch {
            throw StorageFault(error)
        }
    }
}

@available(*, unavailable)
extension EmbeddedStore: Sendable {}

extension EmbeddedStore: ServerStorage {
    package var head: LogHead {
        current?.head ?? LogHead(revision: 0, hash: LineageHash(origin: identity))
    }

    package var floor: Revision { current?.floor ?? 0 }

    package func compact(
        through target: Revision, entries: Int, bytes: Int
    ) throws(StorageFault) -> Int {
        try working { (session) throws(SQLiteError) in
            try session.compact(through: target, entries: entries, bytes: bytes)
        }
    }

    package var isShared: Bool { false }
    package var steps: Int { current?.bound.steps ?? 0 }

    package func changesMore(_ work: SetWork) -> Bool { current?.capture != nil }

    package func devices(
        named names: [String]
    ) throws(StorageFault) -> [String: KnownDevice] {
        try working { (session) throws(SQLiteError) in
            var known: [String: KnownDevice] = [:]
            for name in names { known[name] = try session.device(named: name) }
            return known
        }
    }

    package func begin(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry] {
        let changed = try working { (session) throws(SQLiteError) in
            try session.begin()
            return try session.changedTables()
        }
        if let changed { throw changed }
        return try working { (session) throws(SQLiteError) in
            try session.takeExternalWrites(now: now, maxBytes: maxBytes, unsendable)
        }
    }

    package var isExternalParted: Bool { current?.isExternalParted ?? false }

    package func look() throws(StorageFault) -> StorageLook {
        try working { (session) throws(SQLiteError) in
            StorageLook(
                head: session.head, floor: session.floor,
                hasExternalWrites: try session.hasExternalWrites())
        }
    }

    /// Returns how often statements had to be compiled again since the last call.
    package func takeRecompilations() -> Int { current?.connection.takeRecompilations() ?? 0 }

    package func commit() throws(StorageFault) {
        // SQLite would otherwise write to a file that no program can open any more.
        if current?.connection.hasMoved == true { throw .moved }
        try working { (session) throws(SQLiteError) in try session.commit() }
    }

    package func recover() throws(StorageFault) {
        // A connection that had an error may hold a transaction that it cannot end. A new one
        // starts from the file's state.
        current?.connection.rollback()
        // The connection is kept until the file is back, because another or a new file would not be
        // this data set.
        if current?.connection.hasMoved == true { throw .moved }
        current = nil
        do throws(SQLiteError) {
            let connection = try EmbeddedSession.connect(path: path, mode: .readWrite, vfs: vfs)
            current = try EmbeddedSession(
                connection: connection, schema: schema, unsendable: unsendable)
        } catch {
            throw StorageFault(error)
        }
    }

    package func register(
        clientID: String, principal: Principal, most: Int, now: Int64
    ) throws(StorageFault) -> KnownDevice? {
        try working { (session) throws(SQLiteError) in
            try session.register(
                clientID: clientID, principal: principal, most: most, now: now)
        }
    }

    package func acknowledge(
        _ sequence: Int64, clientID: String
    ) throws(StorageFault) {
        try working { (session) throws(SQLiteError) in
            try session.acknowledge(sequence, clientID: clientID)
        }
    }

    package func isDecided(_ identifier: String) throws(StorageFault) -> Bool {
        try working { (session) throws(SQLiteError) in
            try session.verdict(identifier: identifier) != nil
        }
    }

    package func facts(for requests: [FactsRequest]) throws(StorageFault) -> [SetFacts] {
        try working { (session) throws(SQLiteError) in
            var facts: [SetFacts] = []
            facts.reserveCapacity(requests.count)
            for request in requests { facts.append(try session.facts(for: request)) }
            return facts
        }
    }

    package func rows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(StorageFault) -> [RuleRow] {
        try working { (session) throws(SQLiteError) in
            try session.ruleRows(of: type, where: column, isAmong: values)
        }
    }

    package var views: any ViewStorage { EmbeddedViews(self) }

    package func apply(_ works: [SetWork]) throws(StorageFault) -> [SetOutcome] {
        var outcomes: [SetOutcome] = []
        for work in works {
            let outcome = try apply(work)
            outcomes.append(outcome)
            if case .refused = outcome { break }
        }
        return outcomes
    }

    private func apply(_ work: SetWork) throws(StorageFault) -> SetOutcome {
        let session = try session()
        if let refusal = unbearable[work.request.content] { return .refused(refusal) }
        do throws(SQLiteError) {
            return try session.apply(work)
        } catch {
            // If memory is short, or the disk is full or fails, SQLite may end the transaction
            // itself. Then the set is not at fault.
            guard
                session.connection.isInTransaction || !error.isConstraint && !error.isInterrupted
            else {
                // A trigger or a constraint of the schema rolled everything back, or SQLite did so
                // when the set's work was ended. The set is remembered, so that only it is refused
                // when the batch is repeated.
                if unbearable.count >= Self.mostUnbearable { unbearable.removeAll() }
                unbearable[work.request.content] =
                    error.isInterrupted
                    ? Acceptance.excess
                    : Refusal(.constraint, "the database rolls everything back for this change")
                throw StorageFault(.rolledBack, error.description)
            }
            throw StorageFault(error)
        }
    }

    package func remember(
        _ refusal: Refusal, of request: FactsRequest, now: Int64
    ) throws(StorageFault) {
        try working { (session) throws(SQLiteError) in
            try session.remember(refusal, of: request, now: now)
        }
    }

    package func truths(
        of requests: [CurrentRowsRequest], setBytes: Int, maxBytes: Int
    ) throws(StorageFault) -> [SetTruth] {
        try working { (session) throws(SQLiteError) in
            try session.truths(of: requests, setBytes: setBytes, maxBytes: maxBytes)
        }
    }
}
