import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit

@testable import MartletPostgres
@testable import MartletServerCore

/// A server with policies on a database, as it is between two looks at the tables: nobody has it take changed tables
/// up. Confined to the thread that made it.
final class PolicyServer {
    let store: PostgresStore
    let log: PostgresLog
    let node: DataSetNode
    let names: TableNames?

    /// Takes the tables up.
    /// - Parameter policies: The rules file; nil for none.
    init(_ address: PostgresAddress, _ policies: String?) throws {
        let connection = try PostgresConnection(address)
        defer { connection.close() }
        var program: RulesProgram?
        let tables = try PostgresSchema.refresh(connection, now: 2) { schema in
            program = try policies.map { try RulesProgram($0, schema: schema) }
            return program
        }
        names = program.map { TableNames(tables, readBy: $0) }
        store = try PostgresStore(address, checking: names)
        log = PostgresLog(address, schema: store.schema, checking: names, now: { 1 })
        node = try DataSetNode(
            storage: store, log: log, rules: .everything, cacheBytes: 1 << 20)
        node.policies = program
    }

    deinit { store.close() }

    /// Answers a new device of a person. The rows are read by another reader than the one that judges them.
    /// - Throws: The problem with the request.
    func answer(_ person: String = "ann") throws -> SyncAnswer {
        let request = SyncRequest(maxRevision: 0)
        let admitted = AdmittedRequest(
            principal: Principal(name: person, user: person), request: request,
            source: try SyncCoder.encode(request))
        return try SyncCoder.decodeAnswer(node.process([admitted], now: 1_000)[0].get().body)
    }

    /// Returns the key of a person's view of a type; nil if it is no part.
    func key(_ person: String, of type: String) -> [UInt8]? {
        guard let policies = node.policies, let type = node.schema.index(of: type) else {
            return nil
        }
        let rights = RowRights(policies, of: Principal(name: person, user: person), now: 1_000)
        guard case .judged(let key) = rights.extents()[type] else { return nil }
        return key.digest
    }
}
