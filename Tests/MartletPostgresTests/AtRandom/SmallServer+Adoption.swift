import Foundation
import PostgresKit

@testable import MartletPostgres

/// The life of an adoption: it begins, grows, changes its capture, moves to another database, and ends.
extension SmallServer {
    /// Adopts tables, beside those that are adopted.
    func adopt(_ request: PostgresAdoption.Request) throws {
        let isNew = try MartletTables.dataSet(on: connection) == nil
        _ = try PostgresAdoption(on: connection, now: 1).adopt(request)
        if isNew {
            folded = FoldedLog()
            capture = .triggers
        }
    }

    /// Changes how other programs' writes are found; no server runs meanwhile.
    func change(to new: ExternalCapture) throws {
        stop()
        stopReading()
        _ = try CaptureSwitch(on: connection).change(to: new)
        capture = new
    }

    /// Begins what a server does with the write-ahead log, if it is not under way.
    func read() {
        if capture == .logical, pump == nil { pump = .init(owner) }
    }

    /// Ends the adoption, as `martlet postgres release` does.
    /// - Parameter isStopped: Whether who reads the write-ahead log is stopped before.
    func release(isStopped: Bool) throws {
        stop()
        if isStopped { stopReading() }
        _ = try PostgresRelease(on: connection).release(name: nil, dropsSurrogates: true)
        stopReading()
        folded = FoldedLog()
        capture = .triggers
    }

    /// What is of Martlet's in the database, or for it in the cluster.
    func remains() throws -> [String] {
        let admin = try program()
        defer { admin.close() }
        let rows = try admin.query(
            """
            SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname LIKE '%martlet%' UNION ALL
            SELECT 'relation ' || relname FROM pg_class WHERE relname LIKE '%martlet%' UNION ALL
            SELECT 'column ' || attname FROM pg_attribute WHERE attname LIKE '%martlet%' AND NOT attisdropped
                UNION ALL
            SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgname LIKE '%martlet%' UNION ALL
            SELECT 'function ' || proname FROM pg_proc WHERE prosrc LIKE '%martlet%' UNION ALL
            SELECT 'event trigger ' || evtname FROM pg_event_trigger UNION ALL
            SELECT 'publication ' || pubname FROM pg_publication UNION ALL
            SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()
                UNION ALL
            SELECT 'setting of ' || setrole::regrole FROM pg_db_role_setting WHERE setdatabase =
                (SELECT oid FROM pg_database WHERE datname = current_database()) UNION ALL
            SELECT 'large object ' || oid FROM pg_largeobject_metadata
            """)
        return try (0..<rows.count).map { try rows.text($0, 0) }
    }

    /// How a database becomes another one.
    enum Move: String, CaseIterable {
        case dump
        case archive
        case archiveInOne
        case template
    }

    /// Moves to a copy of the database; the old one is gone.
    func move(_ way: Move, through servers: DatabaseURLs) throws {
        let isOpen = store != nil
        stop()
        stopReading()
        let old = owner["dbname"] ?? ""
        let new = "random_" + UUID().uuidString.replacing("-", with: "").lowercased()
        let slots = try connection.query(
            "SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()")
        for row in 0..<slots.count { try LogicalSlot(on: connection).drop(try slots.text(row, 0)) }
        connection.close()
        // A busy machine takes long to copy a database.
        let admin = try PostgresConnection(
            root.setting("dbname", "postgres"), PostgresOptions(statement: nil, answer: nil))
        defer { admin.close() }
        if way == .template {
            try admin.execute("CREATE DATABASE \(new) OWNER \(Self.role) TEMPLATE \(old)")
        } else {
            try admin.execute("CREATE DATABASE \(new) OWNER \(Self.role) TEMPLATE template0")
            try Self.copy(way, from: servers.url(old), to: servers.url(new))
        }
        try admin.execute("DROP DATABASE \(old) WITH (FORCE)")
        owner = owner.setting("dbname", new)
        root = root.setting("dbname", new)
        connection = try PostgresConnection(owner, PostgresOptions(statement: nil, lock: nil))
        if isOpen { open() }
    }

    private static func copy(_ way: Move, from old: String, to new: String) throws {
        let script =
            switch way {
            case .dump: #"pg_dump "$0" | psql -X -q -v ON_ERROR_STOP=1 -o /dev/null "$1""#
            case .archive: #"pg_dump -Fc "$0" | pg_restore -e -d "$1""#
            default: #"pg_dump -Fc "$0" | pg_restore -e -1 -d "$1""#
            }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script, old, new]
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw PostgresError(.other, "\(script) ended with \(process.terminationStatus)")
        }
    }
}

/// The addresses of a server's databases, as its programs take them.
struct DatabaseURLs {
    let base: String

    func url(_ database: String) -> String {
        var parts = URLComponents(string: base) ?? URLComponents()
        parts.path = "/" + database
        return parts.string ?? ""
    }
}
