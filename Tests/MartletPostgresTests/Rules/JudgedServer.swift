import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit
import Testing

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

        /// Whether the set is to be accepted; nil if nobody can tell.
        var isAcceptable: Bool? { isHidden || isStale || isLoose ? false : isAllowed }

        /// Whether the server may give this reason for a refusal.
        func explains(_ reason: RefusalReason?) -> Bool {
            switch reason {
            case .permission: isAllowed != true
            case .stale: isHidden || isStale
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

    private struct Key: Hashable {
        let type: String
        let id: RecordID
    }

    private struct OwnID: Hashable {
        let client: String?
        let key: Key
    }

    /// A change or a deletion of a record.
    private struct Statement {
        let key: Key
        /// The revision on which it is based.
        let base: Revision?
        /// The new values; nil if the record is deleted.
        let attributes: Attributes?

        private var place: String { "\(key.type) WHERE id = \(key.id)" }

        /// Finds the record.
        var look: String { "SELECT 1 FROM \(place)" }

        /// Finds the record if it may be changed or deleted in its present state.
        var trial: String {
            guard let attributes else { return "DELETE FROM \(place)" }
            let rights = attributes.names.map {
                " AND has_column_privilege('\(key.type)', '\($0)', 'UPDATE')"
            }
            return "SELECT 1 FROM \(place)\(rights.joined()) FOR UPDATE"
        }

        var update: String? {
            guard let attributes, !attributes.names.isEmpty else { return nil }
            let list = zip(attributes.names, attributes.values).map {
                "\($0) = \(RandomRules.literal($1))"
            }
            return "UPDATE \(key.type) SET \(list.joined(separator: ", ")) WHERE id = \(key.id)"
        }
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
    private(set) var counts = (accepted: 0, refused: 0, stale: 0, unclear: 0, cut: 0, begun: 0)

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
        for table in reference.tables { nextIDs[table.name] = try server.nextID(of: table.name) }
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
                "ALTER TABLE \($0.name) DISABLE ROW LEVEL SECURITY;"
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

    /// Runs a statement as another program does, here and there.
    func execute(_ sql: String) throws {
        try server.execute(sql)
        try reference.connection.execute(sql)
        while server.node.takeExternalWrites(now: now) {}
        // The reference has the rows already.
        for entry in try newEntries() {
            note(entry, try SyncCoder.decodeChangeSet(entry.body))
        }
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
            // The device begins again, but the server has decided on its sets.
            if problem.kind == "view" {
                counts.begun += 1
                try compare(request)
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
        for set in request.changeSets {
            guard let identifier = set.identifier, outcomes[identifier] == nil else { continue }
            while let entry = entries.first, entry.identifier == nil {
                try mirror(entry, request.clientID)
                entries.removeFirst()
            }
            let judgement = try judge(set, request)
            let isAccepted = entries.first?.identifier == identifier
            if isAccepted {
                try mirror(entries.removeFirst(), request.clientID)
                outcomes[identifier] = .accepted
                counts.accepted += 1
            } else {
                outcomes[identifier] = .refused(judgement)
                counts.refused += 1
            }
            if judgement.isStale { counts.stale += 1 }
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

    private func name(of id: RecordID, _ type: String, _ client: String?) -> RecordID? {
        guard case .integer(let number) = id, number < 0 else { return id }
        return permanent[OwnID(client: client, key: Key(type: type, id: id))]
    }

    /// Tries a set in PostgreSQL as its sender.
    ///
    /// Decision 0269 differs from a transaction of PostgreSQL in one point: the records that a set changes
    /// or deletes are judged in the state before the set, not in the one that its earlier statements leave.
    /// `SELECT … FOR UPDATE` asks the same policies there. If an UPDATE then does not find its row any
    /// more, PostgreSQL cannot judge the new row, so the judgement is open.
    private func judge(_ set: ChangeSet, _ request: SyncRequest) throws -> Judgement {
        var judgement = Judgement()
        let device = request.clientID.flatMap { numbers[$0] }
        try reference.asPerson(viewer(sender)) {
            let statements = statements(of: set, request.clientID, &judgement)
            for statement in statements {
                let others =
                    (changes[statement.key] ?? [:])
                    .filter { $0.key == 0 || $0.key != device }.values.max() ?? 0
                let base = statement.base ?? set.seen ?? request.maxRevision
                if base < others { judgement.isStale = true }
                if try reference.attempt(statement.look) != 1 { judgement.isHidden = true }
                if try reference.attempt(statement.trial) != 1 { judgement.isAllowed = false }
            }
            if try !mayInsert(set) { judgement.isAllowed = false }
            // The others do not leave rows.
            guard judgement.isAcceptable == true else { return }
            try judgeRows(of: set, statements.compactMap(\.update), &judgement)
        }
        return judgement
    }

    /// Returns whether the present role has the privileges for the new records of a set.
    private func mayInsert(_ set: ChangeSet) throws -> Bool {
        for changes in set.types {
            for id in changes.create {
                let names = changes.entries.first { $0.id == id }?.attributes.names ?? []
                var rights = names.map {
                    "has_column_privilege('\(changes.name)', '\($0)', 'INSERT')"
                }
                if names.isEmpty {
                    rights = ["has_any_column_privilege('\(changes.name)', 'INSERT')"]
                }
                let sql = "SELECT 1 WHERE \(rights.joined(separator: " AND "))"
                guard try reference.attempt(sql) == 1 else { return false }
            }
        }
        return true
    }

    /// Returns the statements that change or delete the records that a set names.
    private func statements(
        of set: ChangeSet, _ client: String?, _ judgement: inout Judgement
    ) -> [Statement] {
        var statements: [Statement] = []
        for changes in set.types {
            for id in changes.update + changes.delete {
                let entry = changes.entries.first { $0.id == id }
                guard let permanent = name(of: id, changes.name, client) else {
                    judgement.isLoose = true
                    continue
                }
                let isDelete = changes.delete.contains(id)
                statements.append(
                    Statement(
                        key: Key(type: changes.name, id: permanent), base: entry?.revision,
                        attributes: isDelete ? nil : entry?.attributes ?? Attributes()))
            }
        }
        return statements
    }

    /// Judges the rows that a set leaves: its INSERTs, then its UPDATEs.
    private func judgeRows(
        of set: ChangeSet, _ updates: [String], _ judgement: inout Judgement
    ) throws {
        for changes in set.types {
            guard let table = reference.tables.first(where: { $0.name == changes.name }) else {
                throw ReferenceFailure("there is no type \(changes.name)")
            }
            var next = nextIDs[table.name] ?? 1
            for id in changes.create {
                let attributes = changes.entries.first { $0.id == id }?.attributes ?? Attributes()
                try reference.setNextID(next)
                next += 1
                let sql = ReferenceDatabase.insertion(
                    Array(attributes.values), Array(attributes.names), into: table)
                guard try reference.attempt(sql, isKept: true) == 1 else {
                    judgement.isAllowed = false
                    return
                }
            }
        }
        for update in updates {
            switch try reference.attempt(update, isKept: true) {
            case 1: continue
            case nil: judgement.isAllowed = false
            default: judgement.isAllowed = nil
            }
            return
        }
    }

    /// Brings an entry of the log into the reference.
    private func mirror(_ entry: LogEntry, _ client: String?) throws {
        let set = try SyncCoder.decodeChangeSet(entry.body)
        let created = set.types.flatMap { changes in
            changes.create.map { Key(type: changes.name, id: $0) }
        }
        let temporaries = (entry.temporaries ?? "")
            .split(separator: ",", omittingEmptySubsequences: false)
        for (key, text) in zip(created, temporaries) {
            guard let number = Int64(text) else { continue }
            let own = Key(type: key.type, id: .integer(number))
            permanent[OwnID(client: client, key: own)] = key.id
        }
        if entry.identifier != nil, let client { numbers[client] = entry.device }
        for changes in set.types {
            for record in changes.entries {
                let (names, values) = (record.attributes.names, record.attributes.values)
                let literals = values.map(RandomRules.literal)
                if changes.create.contains(record.id) {
                    try run(
                        """
                        INSERT INTO \(changes.name) (\((["id"] + names).joined(separator: ", "))) \
                        VALUES (\((["\(record.id)"] + literals).joined(separator: ", ")))
                        """)
                } else if changes.update.contains(record.id) {
                    let statement = Statement(
                        key: Key(type: changes.name, id: record.id), base: nil,
                        attributes: record.attributes)
                    if let update = statement.update { try run(update) }
                }
            }
            for id in changes.delete { try run("DELETE FROM \(changes.name) WHERE id = \(id)") }
        }
        note(entry, set)
    }

    private func run(_ sql: String) throws {
        guard try reference.connection.query(sql).affectedCount == 1 else {
            throw ReferenceFailure("\(sql): the log does not fit the reference's rows")
        }
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
