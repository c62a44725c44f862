import Foundation
import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds

@testable import MartletEmbedded
@testable import MartletPostgres
@testable import MartletServerCore

/// Martlet's server on a file or a database that holds tables and rows of chance.
final class RulesServer {
    let name: String
    private(set) var storage: any ServerStorage
    private(set) var log: any LogSource
    private(set) var node: DataSetNode
    /// Reads and writes the tables as another program does.
    private let other: OtherProgram
    private let home: () throws -> (any ServerStorage, any LogSource)

    private enum OtherProgram {
        case file(Connection, FaultDisk)
        case database(PostgresConnection)
    }

    private init(
        _ name: String, _ other: OtherProgram,
        _ home: @escaping () throws -> (any ServerStorage, any LogSource)
    ) throws {
        self.name = name
        self.other = other
        self.home = home
        (storage, log) = try home()
        node = try DataSetNode(
            storage: storage, log: log, rules: .everything, cacheBytes: 1 << 20)
    }

    deinit { if case .database(let connection) = other { connection.close() } }

    /// Makes the server of a file on a simulated disk.
    static func file(_ rules: RandomRules) throws -> RulesServer {
        let disk = FaultDisk(name: DiskName.next("server"))
        let script = rules.script(.file, rows: false)
        let (path, vfs) = ("data.sqlite", disk.vfsName)
        let connection = try EmbeddedSession.connect(path: path, vfs: vfs)
        try connection.execute(rules.script(.file))
        return try RulesServer("a file", .file(connection, disk)) {
            let store = try EmbeddedStore(
                path: path, vfs: vfs, script: script, identity: "0123456789abcdef", now: 1)
            let log = EmbeddedLog(
                path: path, vfs: vfs, schema: store.schema, unsendable: store.unsendable)
            return (store, log)
        }
    }

    /// Makes the server of a database, whose contents are dropped.
    static func database(_ address: PostgresAddress, _ rules: RandomRules) throws -> RulesServer {
        let connection = try PostgresConnection(address)
        try connection.execute(
            """
            SET client_min_messages = error; DROP SCHEMA IF EXISTS _martlet CASCADE;
            DROP SCHEMA public CASCADE; CREATE SCHEMA public
            """)
        _ = try PostgresInit(on: connection, now: 1).make(rules.script(.served), name: "rules")
        return try RulesServer("PostgreSQL", .database(connection)) {
            let unsendable = UnsendableRows()
            let store = try PostgresStore(address, unsendable: unsendable)
            let log = PostgresLog(
                address, schema: store.schema, unsendable: unsendable, now: { 1 })
            return (store, log)
        }
    }

    /// Opens the data set again, as a new process would.
    func restart(answerBytes: Int, partBytes: Int) throws {
        (storage, log) = try home()
        node = try DataSetNode(
            storage: storage, log: log, rules: .everything, cacheBytes: 1 << 20,
            answerBytes: answerBytes, partBytes: partBytes)
    }

    /// Runs a statement as another program does.
    func execute(_ sql: String) throws {
        switch other {
        case .file(let connection, _): try connection.execute(sql)
        case .database(let connection): try connection.execute(sql)
        }
    }

    /// Returns the rows of tables, each as a line.
    func lines(of tables: [RandomRules.Table]) throws -> [String] {
        switch other {
        case .file(let connection, _): try connection.lines(of: tables)
        case .database(let connection):
            try ReferenceDatabase(connection: connection, tables: tables).lines()
        }
    }

    /// Returns the newest revision of the records of each type.
    func revisions() throws -> [String: Revision] {
        func sql(_ records: String, _ types: String) -> String {
            """
            SELECT t.name, max(r.revision) FROM \(records) AS r JOIN \(types) AS t \
            ON t.number = r.type GROUP BY 1
            """
        }
        let rows: [(String, Revision)]
        switch other {
        case .file(let connection, _):
            rows = try connection.statement(
                sql("martlet_records", "martlet_types")
            ).rows { (row) throws(SQLiteError) in (row.text(0), row.integer(1)) }
        case .database(let connection):
            let answer = try connection.query(sql("_martlet.records", "_martlet.types"))
            rows = try (0..<answer.count).map {
                (try answer.text($0, 0), try answer.integer($0, 1))
            }
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// Returns the id that the next record of a type gets from a server that was just opened.
    func nextID(of table: RandomRules.Table) throws -> Int64 {
        let name = RandomRules.literal(.text(table.name))
        switch other {
        case .file(let connection, _):
            return try connection.integer(
                "SELECT next_id FROM martlet_types WHERE name = \(name)") ?? 1
        case .database(let connection):
            let relation = RandomRules.literal(.text(PostgresConnection.quoted(table.name)))
            let key = RandomRules.literal(.text(table.key))
            let sequence = try connection.query(
                "SELECT pg_get_serial_sequence(\(relation), \(key))"
            ).text(0, 0)
            return try connection.query(
                "SELECT last_value + is_called::integer FROM \(sequence)"
            ).integer(0, 0)
        }
    }
}

extension Connection {
    /// Returns the rows of tables, each as a line.
    func lines(of tables: [RandomRules.Table]) throws -> [String] {
        try tables.flatMap { table in
            try prepare(table.selection).rows { (row) throws(SQLiteError) in
                table.line((0..<row.columnCount).map { row.isNull($0) ? nil : row.text($0) })
            }
        }.sorted()
    }
}
