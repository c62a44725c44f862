import Foundation
import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletRules
import MartletServerCore
import SQLiteKit

/// A server on a file whose people see a part each: what a change costs as people grow in number, and
/// what the same costs without policies.
enum ViewCases {
    private static let series = [10, 100, 1_000, 10_000]
    /// The most listeners: those of the first people.
    private static let mostListeners = 1_000
    /// A case that takes longer is broken off, and its figure is what was reached.
    private static let budget = Duration.seconds(40)

    @Sendable static func run() async throws {
        for people in try ScalingPoints.chosen("people", of: series) { try run(people: people) }
    }

    private static func run(people: Int) throws {
        let club = ViewClub(teams: max(people, 2), playersPerTeam: 10, people: people)
        let server = try ViewedServer(club)
        let name = "views/\(people) people"
        var listeners: [ViewListener] = []
        let start = ContinuousClock.now
        for number in 1...people where ContinuousClock.now - start < budget {
            let listener = ViewListener(number)
            try server.exchange([listener])
            listeners.append(listener)
        }
        let each = (ContinuousClock.now - start) / .milliseconds(1) / Double(listeners.count)
        try Measurement(
            "\(name): a first view (\(listeners.count) were made)", unit: "ms", samples: [each]
        ).report()
        listeners = Array(listeners.prefix(mostListeners))
        try changes(name, server, listeners, of: "fee")
        try changes(name, server, listeners, of: "members")
    }

    /// Sends sets of the office, and has each listener that is told fetch its part.
    private static func changes(
        _ name: String, _ server: ViewedServer, _ listeners: [ViewListener], of what: String
    ) throws {
        var (rounds, records, told) = (0, 0, 0)
        let start = ContinuousClock.now
        let used = Machine.processorSeconds
        while rounds < 100, ContinuousClock.now - start < budget {
            rounds += 1
            let head = server.head
            records +=
                try what == "fee"
                ? server.changeFees(round: rounds) : server.moveMember(round: rounds)
            let concerned = server.woken(after: head, of: listeners)
            told += concerned.count
            for first in stride(from: 0, to: concerned.count, by: 32) {
                try server.exchange(
                    Array(concerned[first..<min(first + 32, concerned.count)]))
            }
        }
        let cpu = Machine.processorSeconds - used
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let what =
            what == "fee"
            ? "changes of records, eight sets of 100 at once" : "changes of memberships, one by one"
        let name = "\(name), \(listeners.count) listening: \(what)"
        try Measurement(
            "\(name), accepted and passed on", unit: "1/s", samples: [Double(records) / seconds],
            expected: records > rounds ? "5000" : nil
        ).report()
        try Measurement(
            "\(name), a CPU second", unit: "1/s", samples: [Double(records) / cpu]
        ).report()
        try Measurement(
            "\(name), exchanges for a round", unit: "exchanges",
            samples: [Double(told) / Double(rounds)]
        ).report()
    }
}

/// A device that remembers where it is, and keeps no records.
final class ViewListener {
    let principal: Principal
    let name: String
    var revision: Revision = 0
    var lineage: String?

    init(_ number: Int) {
        principal = Principal(name: "t\(number)", user: "p\(number)")
        name = "d\(number)"
    }
}

/// A data set in a file, without a network before it.
final class ViewedServer {
    private let folder: BenchmarkFolder
    private let node: DataSetNode
    private let reader: LogReader
    private let club: ViewClub
    /// The revisions of records, by type and id.
    private var revisions: [String: Revision] = [:]
    private var sequence: Int64 = 0
    private var now: Int64 = 1_000
    private let office = Principal(name: "office", user: "olga", roles: ["office"])

    init(_ club: ViewClub) throws {
        self.club = club
        folder = try BenchmarkFolder()
        let path = folder.path("club.sqlite")
        try club.make(at: path)
        let storage = try EmbeddedStore(
            path: path, script: ViewClub.schema, identity: "0123456789abcdef0123456789abcdef",
            now: 1)
        let unsendable = UnsendableRows()
        let log = {
            EmbeddedLog(path: path, vfs: nil, schema: storage.schema, unsendable: unsendable)
        }
        node = try DataSetNode(
            storage: storage, log: log(), rules: .everything, cacheBytes: 64 << 20)
        reader = LogReader(
            feed: node.feed, log: log(),
            check: EmbeddedCheck(
                path: path, vfs: nil, schema: storage.schema, unsendable: unsendable))
        node.policies = try RulesProgram(ViewClub.rules, schema: storage.schema)
        let records = try Connection(path: path, mode: .readWrite).prepare(
            """
            SELECT t.name || ' ' || r.id, r.revision FROM martlet_records AS r
            JOIN martlet_types AS t ON t.number = r.type
            """)
        while try records.step() { revisions[records.text(0)] = records.integer(1) }
    }

    private func decide(_ texts: [(String, Principal)]) throws -> [PreparedAnswer] {
        now += 1
        let requests = try texts.map { text, principal in
            let bytes = Array(text.utf8)
            return AdmittedRequest(
                principal: principal, request: try SyncCoder.decodeRequest(bytes), source: bytes)
        }
        return try node.decide(requests, now: now).map { result in
            switch try result.get() {
            case .made(let answer): answer
            case .unread(let unread): try reader.answer(unread).get()
            }
        }
    }

    /// Brings devices up to the head.
    func exchange(_ listeners: [ViewListener]) throws {
        var open = listeners
        while !open.isEmpty {
            let answers = try decide(
                open.map { device in
                    let lineage = device.lineage.map { "\"lineage\":\"\($0)\"," } ?? ""
                    return (
                        """
                        {"clientId":"\(device.name)","protocol":1,"maxRevision":\(device.revision),\
                        \(lineage)"changeSets":[]}
                        """, device.principal
                    )
                })
            var rest: [ViewListener] = []
            for (device, answer) in zip(open, answers) {
                let answer = try SyncCoder.decodeAnswer(answer.body)
                (device.revision, device.lineage) = (answer.maxRevision, answer.lineage)
                if answer.more { rest.append(device) }
            }
            open = rest
        }
    }

    var head: Revision { node.head.revision }

    /// Returns the listeners whom the commits after a revision wake, and whom the server then tells that
    /// there is something to fetch.
    func woken(after head: Revision, of listeners: [ViewListener]) -> [ViewListener] {
        let people = node.feed.views.concerned(after: head, through: self.head)
        return listeners.filter { listener in
            guard people?.contains(listener.principal) ?? true else { return false }
            var request = DeltaRequest(principal: listener.principal, since: listener.revision)
            request.clientID = listener.name
            request.lineage = listener.lineage
            guard case .batch(let batch) = node.feed.deltas(request) else { return true }
            return !batch.isEmpty
        }
    }

    /// Sends updates, one set for each list of rows, in one batch.
    private func update(_ type: String, _ sets: [[(id: Int, values: String)]]) throws {
        sequence += 1
        let head = self.head
        let answers = try decide(
            sets.enumerated().map { device, rows in
                let ids = rows.map { "\($0.id)" }.joined(separator: ",")
                let attributes = rows.map {
                    "\"\($0.id)\":{\"revision\":\(revisions["\(type) \($0.id)"] ?? 0),\($0.values)}"
                }
                return (
                    """
                    {"clientId":"office\(device)","protocol":1,"maxRevision":\(head),"changeSets":[\
                    {"identifier":"s\(sequence)-\(device)","sequence":\(sequence),\
                    "types":["\(type)"],"\(type)":{"create":[],"update":[\(ids)],"delete":[],\
                    "attributes":{\(attributes.joined(separator: ","))}}}]}
                    """, office
                )
            })
        guard self.head == head + Int64(sets.count) else {
            throw BenchmarkFailure(
                "A set was refused: \(String(decoding: answers[0].body, as: UTF8.self))")
        }
        for (index, rows) in sets.enumerated() {
            for row in rows { revisions["\(type) \(row.id)"] = head + Int64(index) + 1 }
        }
    }

    /// Changes players: each of eight sets those of ten teams.
    /// - Returns: How many.
    func changeFees(round: Int) throws -> Int {
        let players = club.teams * club.playersPerTeam
        var seen: Set<Int> = []
        var sets: [[(id: Int, values: String)]] = []
        for device in 0..<8 {
            var rows: [(id: Int, values: String)] = []
            for index in 0..<100 {
                let team =
                    (round * 7_919 + device * 1_299_709 + (index % 10) * 104_729) % club.teams
                // The player of a number is in the team of the number's remainder.
                let found = team + club.teams * ((index / 10) % club.playersPerTeam)
                let player = found == 0 ? players : found
                guard seen.insert(player).inserted else { continue }
                rows.append((player, "\"fee\":\((round + index) % 97)"))
            }
            if !rows.isEmpty { sets.append(rows) }
        }
        try update("players", sets)
        return seen.count
    }

    /// Moves a membership of a person to another team.
    func moveMember(round: Int) throws -> Int {
        let person = 1 + (round * 7_919) % club.people
        try update(
            "members", [[(2 * person, "\"team_id\":\(1 + (round * 104_729) % club.teams)")]])
        return 1
    }
}
