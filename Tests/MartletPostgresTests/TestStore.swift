import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import SQLiteRecords

@testable import MartletEmbedded
@testable import MartletPostgres
@testable import MartletServerCore

/// A data set in a database of its own, driven with JSON as a device would. Blocks; confined to the
/// thread that made it.
final class TestStore {
    let address: PostgresAddress
    let store: PostgresStore
    let log: PostgresLog
    let node: DataSetNode
    /// Another program.
    let other: PostgresConnection
    var rules = Rules.everything
    var now: Int64 = 1_000
    private var sequence: [String: Int] = [:]

    static let user = Principal(name: "tablet", user: "ada")

    /// - Parameters:
    ///   - script: Makes the tables.
    ///   - adopts: Whether Martlet's triggers are put on them.
    ///   - capture: How what other programs write is found.
    ///   - through: Where the store connects, if not to the server itself.
    ///   - unsendable: Hears of rows that no device can be sent.
    ///   - unreplicated: Hears of commits whose wait for a standby was cancelled.
    init(
        _ address: PostgresAddress, _ script: String? = nil, tables: [String] = [],
        adopts: Bool = false, capture: ExternalCapture = .triggers,
        through proxy: PostgresAddress? = nil,
        options: PostgresOptions = PostgresOptions(), unsendable: UnsendableRows = UnsendableRows(),
        unreplicated: @escaping () -> Void = {}
    ) throws {
        self.address = address
        other = try PostgresConnection(
            address,
            capture == .logical
                ? PostgresOptions(statement: nil, lock: nil) : PostgresOptions())
        if let script {
            try other.execute(script)
            try other.register(tables)
            if adopts {
                for table in try PostgresSchema.read(other).tables {
                    try ExternalTriggers.install(on: other, table: table)
                }
            }
            if capture == .logical {
                // A slot's name is made of it, and the server has only one of a name.
                _ = try other.query(
                    "UPDATE _martlet.dataset SET identity = $1",
                    [.text(UUID().uuidString.replacing("-", with: "").lowercased())])
                _ = try CaptureSwitch(on: other).change(to: .logical)
            }
        }
        store = try PostgresStore(
            proxy ?? address, options, unsendable: unsendable, unreplicated: unreplicated)
        log = PostgresLog(address, schema: store.schema, now: { 1 })
        node = try DataSetNode(
            storage: store, log: log, rules: .everything, cacheBytes: 1 << 20)
    }

    func admitted(_ json: String, as principal: Principal = user) throws -> AdmittedRequest {
        let bytes = Array(json.utf8)
        return AdmittedRequest(
            principal: principal, request: try SyncCoder.decodeRequest(bytes), source: bytes,
            acceptsGzip: false)
    }

    func process(_ requests: [String]) throws -> [Result<SyncAnswer, Problem>] {
        node.rules = rules
        now += 1
        let admitted = try requests.map { try self.admitted($0) }
        return try node.process(admitted, now: now).map { result in
            switch result {
            case .success(let answer): .success(try SyncCoder.decodeAnswer(answer.body))
            case .failure(let problem): .failure(problem)
            }
        }
    }

    /// Why the last batch could not be carried out.
    var fault: String { node.takeFault()?.description ?? "no fault" }

    /// Sends one set of a device that is up to date, and gives what became of it.
    @discardableResult
    func send(
        _ set: String, from client: String = "d1", at revision: Revision? = nil
    ) throws -> ChangeSet {
        try exchange([set], from: client, at: revision).last ?? ChangeSet()
    }

    @discardableResult
    func exchange(
        _ sets: [String], from client: String = "d1", at revision: Revision? = nil
    ) throws -> [ChangeSet] {
        let request = """
            {"clientId":"\(client)","maxRevision":\(revision ?? node.head.revision),\
            "changeSets":[\(sets.joined(separator: ","))]}
            """
        return try process([request])[0].get().changeSets
    }

    /// A set of one type: `create`, `update` and `delete` hold ids as JSON, `attributes` objects by id.
    static func set(
        _ type: String, create: [String] = [], update: [String] = [], delete: [String] = [],
        _ attributes: String = "", identifier: String? = nil, sequence: Int? = nil
    ) -> String {
        let name = identifier.map { #""identifier":"\#($0)","# } ?? ""
        let number = sequence.map { #""sequence":\#($0),"# } ?? ""
        return """
            {\(name)\(number)"types":["\(type)"],"\(type)":{\
            "create":[\(create.joined(separator: ","))],\
            "update":[\(update.joined(separator: ","))],\
            "delete":[\(delete.joined(separator: ","))],"attributes":{\(attributes)}}}
            """
    }

    /// A new team.
    static func team(_ name: String) -> String {
        set("teams", create: ["-1"], #""-1":{"name":"\#(name)"}"#)
    }

    /// A request with one set.
    static func request(_ client: String, _ set: String, at revision: Revision) -> String {
        #"{"clientId":"\#(client)","maxRevision":\#(revision),"changeSets":[\#(set)]}"#
    }

    /// Returns the outcome of the set that a request sent.
    static func fate(_ result: Result<SyncAnswer, Problem>) throws -> String {
        let sets = try result.get().changeSets
        let own = sets.last { $0.reason != nil }
        return (own ?? sets.last { $0.identifier == nil && $0.conflict == false })?.fate ?? "none"
    }

    /// Rows as text: columns parted by bars, rows by line breaks.
    func rows(_ sql: String) throws -> String {
        let rows = try other.query(sql)
        return try rows.values().map { row in
            row.map { $0.text ?? "-" }.joined(separator: "|")
        }.joined(separator: "\n")
    }
}

extension ChangeSet {
    /// `accepted 3`, or the refusal's reason and words.
    var fate: String {
        if let reason { return "\(reason.rawValue): \(message ?? "")" }
        return "accepted \(revision ?? -1)"
    }
}
