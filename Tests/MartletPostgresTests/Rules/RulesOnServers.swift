import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit
import SQLiteKit

@testable import MartletEmbedded
@testable import MartletPostgres
@testable import MartletServerCore

/// The tables, rows and policies of a world on Martlet's servers: a file, and a database.
final class RulesOnServers {
    private struct Server {
        let server: RulesServer
        let program: RulesProgram
        /// The revision of the records of each type.
        let revisions: [String: Revision]

        init(_ server: RulesServer, _ rules: RandomRules) throws {
            self.server = server
            program = try RulesProgram(rules.policies.file, schema: server.storage.schema)
            revisions = try server.revisions()
        }
    }

    private let servers: [Server]
    private let now: Int64
    private var number = 0

    /// - Parameters:
    ///   - database: A database whose contents are dropped.
    ///   - now: Milliseconds since 1970.
    init(_ rules: RandomRules, database: PostgresAddress, now: Int64) throws {
        self.now = now
        servers = [
            try Server(RulesServer.file(rules), rules),
            try Server(RulesServer.database(database, rules), rules),
        ]
    }

    /// A change of one record.
    enum Operation {
        case create(RecordID, [String], [Value])
        case update(RecordID, [String], [Value])
        case delete(RecordID)
    }

    /// Returns the servers' verdicts on a change, which is undone.
    func verdicts(
        on operation: Operation, of table: String, by viewer: Viewer
    ) throws -> [(server: String, isAllowed: Bool, words: String)] {
        let principal = Principal(
            name: "tablet", user: viewer.user, roles: viewer.roles.sorted(), claims: viewer.claims)
        var verdicts: [(server: String, isAllowed: Bool, words: String)] = []
        for judge in servers {
            let server = judge.server
            // A sequence's numbers are not given back, and conditions may name ids.
            if case .create = operation, server.storage is PostgresStore { continue }
            var request = SyncRequest(
                maxRevision: server.storage.head.revision,
                changeSets: [set(operation, table, judge.revisions[table] ?? 0)])
            request.clientID = "c\(viewer.user ?? "")"
            _ = try server.storage.begin(now: now, maxBytes: 0)
            var batch = BatchDecision(
                storage: server.storage, rules: .everything, policies: judge.program,
                hashes: server.node.feed.builder(log: server.log),
                views: server.node.feed.views, now: now, devicesPerUser: 100,
                share: SetMeasure.Share())
            try batch.admit([
                AdmittedRequest(principal: principal, request: request, source: [])
            ])
            let work = try batch.decide()[0]
            try server.storage.recover()
            let refusal = work?.refusals.first
            verdicts.append(
                (
                    server.name, work?.accepted.count == 1,
                    refusal.map { "\($0)" } ?? work?.problem.map { "\($0)" } ?? "accepted"
                ))
        }
        return verdicts
    }

    private func set(
        _ operation: Operation, _ table: String, _ revision: Revision
    ) -> ChangeSet {
        number += 1
        var changes = TypeChanges(name: table)
        switch operation {
        case .create(let id, let names, let values):
            changes.create = [id]
            changes.entries = [
                RecordEntry(id: id, attributes: Attributes(names: names, values: values))
            ]
        case .update(let id, let names, let values):
            changes.update = [id]
            changes.entries = [
                RecordEntry(
                    id: id, revision: revision,
                    attributes: Attributes(names: names, values: values))
            ]
        case .delete(let id):
            changes.delete = [id]
            changes.entries = [RecordEntry(id: id, revision: revision)]
        }
        var set = ChangeSet(types: [changes])
        set.identifier = "set \(number)"
        return set
    }
}
