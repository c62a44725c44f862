import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit
import SQLiteKit

@testable import MartletServerCore

/// Martlet's server, and a PostgreSQL database that judges the same change sets by its row-level
/// security.
///
/// The reference tries each new set as its sender, before it gets what the server's log says. So both have
/// the same rows whenever a set is judged.
final class JudgedServer {
    /// The reference's judgement of a set.
    struct Judgement {
        /// Whether PostgreSQL allows the set; nil if it cannot tell.
        var isAllowed: Bool? = true
        /// Whether the sender may not see a record that the set changes or deletes, or it is gone.
        var isHidden = false
        /// Whether another device changed a record after the sender's device had read it.
        var isStale = false
        /// Whether the set names a record whose own set was refused.
        var isLoose = false
        /// Whether a constraint refuses the rows that the set leaves.
        var violates = false
        /// Whether a record may have the text key of a new one.
        var isTaken = false
        /// Whether a constraint refused a row before all were judged.
        var isCut = false
        /// Whether the set gives a value that must be unique to one record and takes it from another one,
        /// perhaps. The storages do not take all such sets.
        var mayMove = false

        /// Whether the set is to be accepted; nil if nobody can tell.
        var isAcceptable: Bool? {
            isHidden || isStale || isLoose || violates ? false : mayMove ? nil : isAllowed
        }

        /// Whether the server may give this reason for a refusal.
        func explains(_ reason: RefusalReason?) -> Bool {
            switch reason {
            case .permission: isAllowed != true || isCut
            case .constraint: violates || mayMove
            case .stale: isHidden || isStale || isTaken
            case .dependency: isLoose
            default: false
            }
        }
    }

    /// The outcome of a set that was judged.
    private enum Outcome {
        case accepted
        case refused(Judgement)
    }

    struct Key: Hashable {
        let type: String
        let id: RecordID
    }

    private struct OwnID: Hashable {
        let client: String?
        let key: Key
    }

    let server: RulesServer
    let reference: ReferenceDatabase
    /// The sender of the requests.
    var sender = Principal(name: "none")
    /// Milliseconds since 1970.
    var now: Int64
    private(set) var policies: RandomRules.Policies?
    /// The differences between the server and the reference.
    private(set) var faults: [String] = []
    /// How many sets were judged, how many answers were cut, and how many devices had to begin again.
    private(set) var counts = (
        accepted: 0, refused: 0, stale: 0, violating: 0, unclear: 0, cut: 0, begun: 0
    )

    private var outcomes: [String: Outcome] = [:]
    private var permanent: [OwnID: RecordID] = [:]
    private var numbers: [String: Int64] = [:]
    /// The revision at which each device last changed a record, by the device's number.
    private var changes: [Key: [Int64: Revision]] = [:]
    private var nextIDs: [String: Int64] = [:]
    /// The end of the log that the reference has.
    private var mirrored: Revision

    init(_ server: RulesServer, _ reference: ReferenceDatabase, now: Int64) throws {
        self.server = server
        self.reference = reference
        self.now = now
        mirrored = server.node.head.revision
        try readNextIDs()
    }

    private func readNextIDs() throws {
        for table in reference.tables where table.keyKind == .integer {
            nextIDs[table.name] = try server.nextID(of: table)
        }
    }

    /// Returns whether the server takes a rules file.
    func accepts(_ policies: RandomRules.Policies) -> Bool {
        (try? RulesProgram(policies.file, schema: server.storage.schema)) != nil
    }

    /// Sets the policies; nil lifts them.
    func secure(by policies: RandomRules.Policies?) throws {
        self.policies = policies
        let everything = RandomRules.Policies(
            file: reference.tables.map {
                "ALTER TABLE \($0.sql) DISABLE ROW LEVEL SECURITY;"
            }.joined(separator: "\n"), granted: [])
        try reference.secure(by: policies ?? everything)
        try install()
    }

    private func install() throws {
        server.node.policies = try policies.map {
            try RulesProgram($0.file, schema: server.storage.schema)
        }
    }

    func restart(answerBytes: Int, partBytes: Int) throws {
        try server.restart(answerBytes: answerBytes, partBytes: partBytes)
        try install()
        try readNextIDs()
    }

    /// Runs a statement as another program does. A constraint may refuse it.
    func execute(_ sql: String) throws {
        do {
            try server.execute(sql)
        } catch let error as SQLiteError where error.isConstraint {
            return
        } catch let error as PostgresError where error.sqlState?.hasPrefix("23") == true {
            return
        }
        while server.node.takeExternalWrites(now: now) {}
        for entry in try newEntries() { try mirror(entry, nil) }
    }

    /// Compares the rows of the server and of the reference.
    func compareRows() throws {
        let (here, there) = (try server.lines(of: reference.tables), try reference.lines())
        if here != there { fault("the rows are \(here), but those of the reference \(there)") }
    }

    /// Returns the viewer that a person is today.
    func viewer(_ principal: Principal) -> Viewer {
        Viewer(
            user: principal.user, roles: Set(principal.roles), claims: principal.claims,
            today: now / 86_400_000)
    }

    // MARK: - Requests

    func answer(_ body: [UInt8]) throws -> (status: Int, body: [UInt8]) {
        let request = try SyncCoder.decodeRequest(body)
        now += 1
        let admitted = AdmittedRequest(principal: sender, request: request, source: body)
        let result = server.node.process([admitted], now: now)[0]
        if let fault = server.node.takeFault() { throw ReferenceFailure("\(fault)") }
        switch result {
        case .failure(let problem):
            // The device begins again, and the server has decided on none of its sets.
            if problem.kind == "view" {
                counts.begun += 1
                try compare(SyncRequest(maxRevision: request.maxRevision))
            }
            return (problem.status, SyncCoder.encode(problem))
        case .success(let answer):
            try compare(request)
            let decoded = try SyncCoder.decodeAnswer(answer.body)
            compare(decoded)
            try compareRows(decoded)
            return (200, answer.body)
        }
    }

    /// Judges the new sets of a request and compares the outcomes, in the order of the sets.
    private func compare(_ request: SyncRequest) throws {
        var entries = try newEntries()[...]
        // The server refuses what was made on top of a new record that it refused in the same request.
        var uncreated: Set<Key> = []
        for set in request.changeSets {
            guard let identifier = set.identifier else { continue }
            let isOnRefused = set.types.contains { changes in
                (changes.update + changes.delete).contains {
                    uncreated.contains(Key(type: changes.name, id: $0))
                }
            }
            defer {
                let created = set.types.flatMap { changes in
                    changes.create.map { Key(type: changes.name, id: $0) }
                }.filter { !$0.id.isTemporary }
                if case .accepted? = outcomes[identifier] {
                    uncreated.subtract(created)
                } else {
                    uncreated.formUnion(created)
                }
            }
            guard outcomes[identifier] == nil else { continue }
            while let entry = entries.first, entry.identifier == nil {
                try mirror(entry, request.clientID)
                entries.removeFirst()
            }
            let isAccepted = entries.first?.identifier == identifier
            var judgement = try judge(set, request, isAccepted ? entries.first : nil)
            if isOnRefused { judgement.isLoose = true }
            if isAccepted { judgement.mayMove = false }
            if isAccepted {
                try mirror(entries.removeFirst(), request.clientID)
                outcomes[identifier] = .accepted
                counts.accepted += 1
            } else {
                outcomes[identifier] = .refused(judgement)
                counts.refused += 1
            }
            if judgement.isStale { counts.stale += 1 }
            if judgement.violates { counts.violating += 1 }
            if judgement.isAcceptable == nil { counts.unclear += 1 }
            guard let expected = judgement.isAcceptable, expected != isAccepted else { continue }
            fault("\(set) is \(isAccepted ? "accepted" : "refused"), but \(judgement)")
        }
        for entry in entries {
            if let identifier = entry.identifier { fault("\(identifier) has an entry out of turn") }
            try mirror(entry, request.clientID)
        }
    }

    private func fault(_ sentence: String) {
        guard faults.count < 3 else { return }
        faults.append("\(sender), \(server.name): \(sentence)")
    }

    /// Compares the reasons of an answer with the judgements.
    private func compare(_ answer: SyncAnswer) {
        for set in answer.changeSets {
            guard let identifier = set.identifier, let isRefused = set.conflict else { continue }
            switch outcomes[identifier] {
            case .accepted where !isRefused: break
            case .refused(let judgement) where isRefused && judgement.explains(set.reason): break
            case let outcome:
                fault(
                    """
                    \(identifier) is answered \(set.reason.map { "\($0)" } ?? "accepted") \
                    (\(set.message ?? "")), but \(outcome.map { "\($0)" } ?? "unknown")
                    """)
            }
        }
    }

    /// Compares the rows of an answer with those that PostgreSQL shows the sender at its moment. Entries
    /// of the log may have rows that are gone, but only a person who sees everything gets them.
    private func compareRows(_ answer: SyncAnswer) throws {
        if answer.more { counts.cut += 1 }
        let sets = answer.changeSets.filter { $0.conflict != false }
        guard sets.contains(where: { !$0.types.isEmpty }) else { return }
        let shown = try reference.asPerson(viewer(sender)) { try reference.records() }
        for set in sets {
            guard set.isDifference || set.conflict == true else {
                if try shown != reference.records() { fault("an entry is sent: \(set)") }
                continue
            }
            for changes in set.types {
                for entry in changes.entries
                where !changes.delete.contains(entry.id)
                    && !shown.contains("\(changes.name) \(entry.id)")
                {
                    fault("\(changes.name) \(entry) is sent, but may not be seen")
                }
            }
        }
    }

    private func newEntries() throws -> [LogEntry] {
        var entries: [LogEntry] = []
        let head = server.node.head.revision
        while mirrored < head {
            let part = try server.log.entries(
                from: mirrored + 1, through: head, maxBytes: 1 << 20)
            guard let last = part.last else { throw ReferenceFailure("entries are missing") }
            mirrored = last.revision
            entries += part
        }
        return entries
    }

    // MARK: - The reference

    /// Judges a set in PostgreSQL.
    /// - Parameter entry: The entry that it became; nil if it was refused.
    private func judge(
        _ set: ChangeSet, _ request: SyncRequest, _ entry: LogEntry?
    ) throws -> Judgement {
        var ids: [Key: RecordID] = [:]
        for changes in set.types {
            var next = nextIDs[changes.name] ?? 1
            for id in changes.create {
                ids[Key(type: changes.name, id: id)] = id.isTemporary ? .integer(next) : id
                next += 1
            }
        }
        if let entry {
            for (own, id) in Self.given(entry, try SyncCoder.decodeChangeSet(entry.body)) {
                ids[own] = id
            }
        }
        let client = request.clientID
        let trial = SetTrial(
            set, tables: reference.tables, seen: set.seen ?? request.maxRevision, created: ids
        ) { key in
            key.id.isTemporary ? self.permanent[OwnID(client: client, key: key)] : key.id
        }
        let device = client.flatMap { numbers[$0] }
        return try trial.judgement(by: viewer(sender), in: reference) { key in
            (self.changes[key] ?? [:])
                .filter { $0.key == 0 || $0.key != device }.values.max() ?? 0
        }
    }

    /// Returns the temporary ids of an entry's new records, each with the permanent one.
    private static func given(_ entry: LogEntry, _ set: ChangeSet) -> [(own: Key, id: RecordID)] {
        let created = set.types.flatMap { changes in
            changes.create.map { Key(type: changes.name, id: $0) }
        }
        let temporaries = (entry.temporaries ?? "")
            .split(separator: ",", omittingEmptySubsequences: false)
        return zip(created, temporaries).compactMap { key, text in
            Int64(text).map { (Key(type: key.type, id: .integer($0)), key.id) }
        }
    }

    /// Brings an entry of the log into the reference, whose triggers and constraints rest.
    private func mirror(_ entry: LogEntry, _ client: String?) throws {
        let set = try SyncCoder.decodeChangeSet(entry.body)
        for (own, id) in Self.given(entry, set) {
            permanent[OwnID(client: client, key: own)] = id
        }
        if entry.identifier != nil, let client { numbers[client] = entry.device }
        var statements: [String] = []
        for changes in set.types {
            guard let table = reference.tables.first(where: { $0.name == changes.name }) else {
                throw ReferenceFailure("there is no type \(changes.name)")
            }
            for record in changes.entries {
                let (names, values) = (record.attributes.names, record.attributes.values)
                if changes.create.contains(record.id) {
                    // An entry leaves out what is NULL, also if the column has a default.
                    let row = table.columns.map { record.attributes[$0.name] ?? .null }
                    statements.append(
                        RandomRules.insertion(
                            [record.id.value] + row, [table.key] + table.columns.map(\.name),
                            into: table))
                } else if changes.update.contains(record.id), !names.isEmpty {
                    let list = zip(names, values).map {
                        "\(RandomRules.quoted($0)) = \(RandomRules.literal($1))"
                    }
                    statements.append(
                        """
                        UPDATE \(table.sql) SET \(list.joined(separator: ", ")) \
                        WHERE \(table.condition(record.id))
                        """)
                }
            }
            statements += changes.delete.map {
                "DELETE FROM \(table.sql) WHERE \(table.condition($0))"
            }
        }
        try reference.run(statements)
        note(entry, set)
    }

    /// Notes the device that made an entry, and the ids that the entry has taken.
    private func note(_ entry: LogEntry, _ set: ChangeSet) {
        for changes in set.types {
            for id in changes.create + changes.update + changes.delete {
                let key = Key(type: changes.name, id: id)
                self.changes[key, default: [:]][entry.device] = entry.revision
            }
            for case .integer(let id) in changes.create {
                nextIDs[changes.name] = max(nextIDs[changes.name] ?? 1, id + 1)
            }
        }
    }
}
