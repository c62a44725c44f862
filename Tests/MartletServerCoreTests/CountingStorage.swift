import MartletModel
import MartletProtocol
import MartletRules
import SQLiteKit
import SetTexts

@testable import MartletEmbedded
@testable import MartletServerCore

/// A storage that counts what it is asked, and may say that it is shared.
final class CountingStorage: ServerStorage {
    /// Calls by name, with the number of items each was given.
    private(set) var calls: [String: [Int]] = [:]
    let isShared: Bool
    /// Refusals given in place of carrying out the set of an identifier, each once.
    var refusals: [String: Refusal] = [:]
    /// Changes that another program made meanwhile, as bodies of entries; `begin` takes two.
    var outside: [String] = []
    /// How many facts and outcomes are kept back of those asked for: a storage that is wrong.
    var lacking = (facts: 0, outcomes: 0)
    /// Given in place of every truth.
    var truth: SetTruth?
    /// Run in the storage's transaction before truths are read.
    var beforeTruths: ((EmbeddedSession) throws(SQLiteError) -> Void)?
    private let base: EmbeddedStore

    init(_ base: EmbeddedStore, isShared: Bool = false) {
        self.base = base
        self.isShared = isShared
    }

    func count(_ name: String) -> Int { calls[name]?.count ?? 0 }

    func forget() { calls = [:] }

    private func note(_ name: String, _ items: Int = 1) { calls[name, default: []].append(items) }

    var schema: Schema { base.schema }
    var checks: ValueChecks { base.checks }
    var identity: String { base.identity }
    var head: LogHead { base.head }
    var floor: Revision { base.floor }
    var views: any ViewStorage { base.views }

    var isExternalParted: Bool { base.isExternalParted }

    func changesMore(_ work: SetWork) -> Bool { base.changesMore(work) }

    func begin(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry] {
        note("begin")
        _ = try base.begin(now: now, maxBytes: maxBytes)
        guard maxBytes > 0 else { return [] }
        let taken = outside.prefix(2)
        outside.removeFirst(taken.count)
        return try base.working { (session) throws(SQLiteError) in
            var entries: [LogEntry] = []
            for text in taken {
                let revision = try session.nextRevision()
                let body = Array(text.replacing("REVISION", with: "\(revision)").utf8)
                let entry = LogEntry(
                    revision: revision, device: 0, identifier: nil, sequence: nil,
                    temporaries: nil, body: body,
                    hash: session.head.hash.appending(body, identifier: nil), time: now)
                try session.append(entry, content: nil, now: now)
                entries.append(entry)
            }
            return entries
        }
    }

    func commit() throws(StorageFault) {
        note("commit")
        try base.commit()
    }

    func recover() throws(StorageFault) {
        note("recover")
        try base.recover()
    }

    func look() throws(StorageFault) -> StorageLook {
        note("look")
        var look = try base.look()
        look.hasExternalWrites = !outside.isEmpty
        return look
    }

    func devices(named names: [String]) throws(StorageFault) -> [String: KnownDevice] {
        note("devices", names.count)
        return try base.devices(named: names)
    }

    func register(
        clientID: String, principal: Principal, most: Int, now: Int64
    ) throws(StorageFault) -> KnownDevice? {
        note("register")
        return try base.register(
            clientID: clientID, principal: principal, most: most, now: now)
    }

    func acknowledge(_ sequence: Int64, clientID: String) throws(StorageFault) {
        note("acknowledge")
        try base.acknowledge(sequence, clientID: clientID)
    }

    func isDecided(_ identifier: String) throws(StorageFault) -> Bool {
        try base.isDecided(identifier)
    }

    func facts(for requests: [FactsRequest]) throws(StorageFault) -> [SetFacts] {
        note("facts", requests.count)
        return try base.facts(for: requests).dropLast(lacking.facts)
    }

    func rows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(StorageFault) -> [RuleRow] {
        note("rows")
        return try base.rows(of: type, where: column, isAmong: values)
    }

    func apply(_ works: [SetWork]) throws(StorageFault) -> [SetOutcome] {
        note("apply", works.count)
        var outcomes: [SetOutcome] = []
        for work in works {
            if let refusal = refusals.removeValue(forKey: work.request.identifier ?? "") {
                return outcomes + [.refused(refusal)]
            }
            outcomes += try base.apply([work])
            if case .refused? = outcomes.last { break }
        }
        return outcomes.dropLast(lacking.outcomes)
    }

    func remember(
        _ refusal: Refusal, of request: FactsRequest, now: Int64
    ) throws(StorageFault) {
        note("remember")
        try base.remember(refusal, of: request, now: now)
    }

    func compact(through target: Revision, entries: Int, bytes: Int) throws(StorageFault) -> Int {
        try base.compact(through: target, entries: entries, bytes: bytes)
    }

    func truths(
        of requests: [CurrentRowsRequest], setBytes: Int, maxBytes: Int
    ) throws(StorageFault) -> [SetTruth] {
        note("truths", requests.count)
        if let truth { return requests.map { _ in truth } }
        if let beforeTruths { try base.working(beforeTruths) }
        return try base.truths(of: requests, setBytes: setBytes, maxBytes: maxBytes)
    }
}
