import Foundation
import PostgresKit

/// PostgreSQL's own programs for dumping and restoring a database.
struct PostgresTools {
    let address: PostgresAddress

    /// The environment variables for the parts of an address. No part is in a command line, which
    /// other users of the machine can see.
    private static let names = [
        "host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "dbname": "PGDATABASE",
        "user": "PGUSER", "password": "PGPASSWORD", "passfile": "PGPASSFILE",
        "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT",
        "sslkey": "PGSSLKEY", "sslcrl": "PGSSLCRL", "channel_binding": "PGCHANNELBINDING",
        "target_session_attrs": "PGTARGETSESSIONATTRS", "service": "PGSERVICE",
        "gssencmode": "PGGSSENCMODE", "connect_timeout": "PGCONNECT_TIMEOUT",
    ]

    /// Runs a program until it ends. Blocks.
    /// - Parameter input: A file that this process hands to the program's standard input. If this process is
    ///   killed, the program meets an early end, fails, and its transaction is undone.
    /// - Throws: `CommandError` if the program is missing, or if it fails; the error contains its
    ///   output.
    func run(_ program: String, _ arguments: [String], input: String? = nil) throws {
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
        let handed = try input.map { (try Self.open($0), Pipe()) }
        process.standardInput = handed?.1 ?? FileHandle.nullDevice
        try process.run()
        if let (file, pipe) = handed { Self.hand(file, to: pipe) }
        let bytes = try said.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let text = String(decoding: bytes.suffix(2_000), as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            throw CommandError("\(program) failed: \(text)")
        }
    }

    private static func open(_ path: String) throws -> FileHandle {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw CommandError("The file \(path) cannot be read.")
        }
        return file
    }

    /// Writes a file into a pipe on a separate thread, until the reader is gone.
    private static func hand(_ file: FileHandle, to pipe: Pipe) {
        signal(SIGPIPE, SIG_IGN)
        let end = pipe.fileHandleForWriting
        Thread.detachNewThread {
            while let part = try? file.read(upToCount: 1 << 18), !part.isEmpty {
                guard (try? end.write(contentsOf: part)) != nil else { break }
            }
            try? end.close()
        }
    }

    private static func find(_ program: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
