import Foundation
import PostgresKit

/// PostgreSQL's own programs, which know best how a database is dumped and restored.
struct PostgresTools {
    let address: PostgresAddress

    /// The environment's names for what an address says. Nothing of it stands in a command line,
    /// which others on the machine may see.
    private static let names = [
        "host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "dbname": "PGDATABASE",
        "user": "PGUSER", "password": "PGPASSWORD", "passfile": "PGPASSFILE",
        "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT",
        "sslkey": "PGSSLKEY", "sslcrl": "PGSSLCRL", "channel_binding": "PGCHANNELBINDING",
        "target_session_attrs": "PGTARGETSESSIONATTRS", "service": "PGSERVICE",
        "gssencmode": "PGGSSENCMODE", "connect_timeout": "PGCONNECT_TIMEOUT",
    ]

    /// Runs a program until it ends. Blocks.
    /// - Throws: `CommandError` where it is not there, or fails: with what it said.
    func run(_ program: String, _ arguments: [String]) throws {
        guard let path = Self.find(program) else {
            throw CommandError(
                "\(program) is not installed; on Debian: apt-get install postgresql-client")
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        var environment = ProcessInfo.processInfo.environment
        environment["LC_ALL"] = "C"
        for (setting, name) in Self.names {
            if let value = address[setting] { environment[name] = value }
        }
        process.environment = environment
        let said = Pipe()
        process.standardError = said
        process.standardOutput = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let bytes = try said.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let text = String(decoding: bytes.suffix(2_000), as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            throw CommandError("\(program) failed: \(text)")
        }
    }

    private static func find(_ program: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
