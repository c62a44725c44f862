import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite(
    "Names by which policies read, before a server has noticed that they stand for something else")
struct TableNamesTests {
    private static let script = """
        CREATE TABLE notes (id bigserial PRIMARY KEY, number bigint NOT NULL UNIQUE,
            owner text COLLATE "C", "a""b" text COLLATE "C", note text);
        CREATE TABLE plain (id bigserial PRIMARY KEY, number bigint NOT NULL UNIQUE,
            owner text COLLATE "C", "a""b" text COLLATE "C", note text);
        INSERT INTO notes (number, owner, "a""b", note) VALUES (2, 'ann', 'ben', 'own'), (1, 'ben', 'ann', 'HIDDEN');
        INSERT INTO plain (number, owner, "a""b", note) VALUES (2, 'ann', 'ann', 'plain');
        """

    private static let policies = """
        CREATE POLICY own ON notes USING (owner = martlet_user());
        CREATE POLICY own ON plain USING (owner = martlet_user());
        """

    /// A change after which the statements of the server run as before, and what undoes it; nil if nothing does.
    struct Change: Sendable, CustomTestStringConvertible {
        let sql: String
        let undo: String?
        var testDescription: String { sql }

        init(_ sql: String, undo: String?) {
            (self.sql, self.undo) = (sql, undo)
        }
    }

    static let changes: [Change] = [
        columns("owner", "\"a\"\"b\""), columns("id", "number"),
        Change(
            """
            BEGIN; ALTER TABLE notes RENAME TO x; ALTER TABLE plain RENAME TO notes; ALTER TABLE x RENAME TO plain;
            COMMIT
            """,
            undo: """
                BEGIN; ALTER TABLE notes RENAME TO x; ALTER TABLE plain RENAME TO notes; ALTER TABLE x RENAME TO plain;
                COMMIT
                """),
        Change(
            """
            BEGIN; CREATE SCHEMA away; ALTER TABLE notes SET SCHEMA away; CREATE TABLE notes (LIKE away.notes INCLUDING ALL);
            INSERT INTO notes SELECT id, number, 'ann', 'ann', 'HIDDEN' FROM away.notes; COMMIT
            """, undo: "BEGIN; DROP TABLE notes; ALTER TABLE away.notes SET SCHEMA public; COMMIT"),
        Change(
            """
            BEGIN; CREATE TABLE x (LIKE notes INCLUDING ALL); ALTER TABLE x ALTER id DROP DEFAULT;
            INSERT INTO x SELECT id, number, 'ann', 'ann', 'HIDDEN' FROM notes; DROP TABLE notes;
            ALTER TABLE x RENAME TO notes; COMMIT
            """, undo: nil),
        Change(
            """
            BEGIN; ALTER TABLE notes DROP owner; ALTER TABLE notes ADD owner text COLLATE "C" DEFAULT 'ann'; COMMIT
            """, undo: nil),
    ]

    private static func columns(_ first: String, _ second: String) -> Change {
        let sql = """
            BEGIN; ALTER TABLE notes RENAME \(first) TO x; ALTER TABLE notes RENAME \(second) TO \(first);
            ALTER TABLE notes RENAME x TO \(second); COMMIT
            """
        return Change(sql, undo: sql)
    }

    private static func on(
        _ body: @escaping @Sendable (PostgresAddress, PostgresConnection) throws -> Void
    ) async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(script)
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "team", tables: ["notes", "plain"]))
            try body(database.address, connection)
        }
    }

    private static func notes(_ answer: SyncAnswer) -> [Value?] {
        answer.changeSets.flatMap(\.types).filter { $0.name == "notes" }.flatMap(\.entries)
            .map { $0.attributes["note"] }
    }

    @Test(
        "are not used, by whatever reads rows, until the tables are as they were",
        arguments: changes)
    func closed(change: Change) async throws {
        try await Self.on { address, other in
            let server = try PolicyServer(address, Self.policies)
            #expect(Self.notes(try server.answer()) == [.text("own")])
            let path = FileManager.default.temporaryDirectory
                .appendingPathComponent("martlet-\(UUID().uuidString).sqlite").path
            let staging = PostgresStaging(
                address, checking: server.names, unsendable: UnsendableRows(), now: { 1 })
            func difference() throws {
                _ = try server.log.difference(after: 0, maxBytes: .max) { .max }
            }
            try difference()
            try other.execute(change.sql)
            #expect(throws: Problem.self) { try server.answer() }
            #expect(server.node.takeFault()?.kind == .changed)
            let fault = #expect(throws: StorageFault.self) { try difference() }
            #expect(fault?.kind == .changed)
            #expect(throws: (any Error).self) { try staging.write(to: path) }
            #expect(!FileManager.default.fileExists(atPath: path))
            guard let undo = change.undo else { return }
            try other.execute(undo)
            // The storage has connected again, and still has the tables of before.
            _ = try? server.answer()
            #expect(Self.notes(try server.answer()) == [.text("own")])
            try difference()
        }
    }

    @Test("are not used by a transaction that began before", arguments: changes)
    func inTransaction(change: Change) async throws {
        try await Self.on { address, other in
            let server = try PolicyServer(address, Self.policies)
            _ = try server.store.begin(now: 1, maxBytes: 0)
            try other.execute(change.sql)
            let type = try #require(server.store.schema.index(of: "notes"))
            #expect(try !server.store.rows(of: type, where: 0, isAmong: nil).isEmpty)
            let fault = #expect(throws: StorageFault.self) { try server.store.commit() }
            #expect(fault?.kind == .changed)
        }
    }

    @Test("may be changed if no policy reads them")
    func others() async throws {
        try await Self.on { address, other in
            let server = try PolicyServer(address, Self.policies)
            #expect(Self.notes(try server.answer()) == [.text("own")])
            try other.execute(
                "ALTER TABLE notes ADD more text; ALTER TABLE notes DROP \"a\"\"b\" CASCADE")
            // The statements name this column, so the server has to take the tables up.
            #expect(throws: Problem.self) { try server.answer() }
            let next = try PolicyServer(address, Self.policies)
            #expect(Self.notes(try next.answer()) == [.text("own")])
        }
    }

    @Test("a server does not go on by the views of before another one has taken changed values up")
    func takenUpElsewhere() async throws {
        try await Self.on { address, other in
            let servers = try (0..<2).map { _ in try PolicyServer(address, Self.policies) }
            #expect(Self.notes(try servers[0].answer()) == [.text("own")])
            try other.execute("ALTER TABLE notes ALTER owner TYPE text COLLATE \"C\" USING 'ben'")
            let third = try PolicyServer(address, Self.policies)
            #expect(Self.notes(try third.answer()) == [])
            for server in servers {
                #expect(throws: Problem.self) { try server.answer() }
                #expect(server.node.takeFault()?.kind == .changed)
                let fault = #expect(throws: StorageFault.self) {
                    try server.log.difference(after: 0, maxBytes: .max) { .max }
                }
                #expect(fault?.kind == .changed)
            }
        }
    }
}
