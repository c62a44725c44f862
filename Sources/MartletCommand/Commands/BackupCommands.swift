import Foundation
import MartletPostgres
import MartletServer
import PostgresKit

extension CommandDescription {
    static let backup = CommandDescription(
        name: "backup",
        summary: "copy a data set to a file, while servers go on",
        discussion: """
            Writes the data set as it is at one moment, with its log, and beside it a manifest that says
            what it is (FILE.json). A data set in a file is copied by SQLite and checked; a database is
            dumped by pg_dump, whole, in its custom format. The data folder's tokens for the data set go
            into a third file (FILE.tokens); those of a database are in its dump. Keep all of them,
            elsewhere. docs/operations.md says what happens to devices when a backup is restored.
            """,
        options: [
            Option(name: "data", value: "DIR", help: "the server's data folder"),
            Option(name: "dataset", value: "NAME", help: "the data set in that folder"),
            postgresOption,
            Option(name: "out", value: "FILE", help: "the file to write; it is not there yet"),
        ],
        examples: [
            Example("backup --data data --dataset team --out team.backup", "a data set in a file"),
            Example(
                "backup --postgres postgresql://app@localhost/club --out club.backup",
                "a database"),
        ]
    ) { arguments, console in
        guard let out = arguments.value("out") else {
            throw UsageError("backup needs --out FILE.", command: "backup")
        }
        let manifest: BackupManifest
        switch try DataSetLocation(arguments) {
        case .file(let directory, let dataSet):
            manifest = try EmbeddedBackup(directory: directory, dataSet: dataSet)
                .make(at: out, time: time())
        case .database(let address): manifest = try dump(address, out)
        }
        show(manifest, file: out, kept: nil, arguments, console)
        return .done
    }

    static let restore = CommandDescription(
        name: "restore",
        summary: "put a backup in a data set's place",
        discussion: """
            Checks the backup against its manifest first. A data set in a file is put into the data
            folder, and its tokens beside those that are there (what was revoked stays so); its server is
            stopped, and what is there is kept under another name. A database is
            restored by pg_restore into one that is empty, in one transaction; objects belong to the role
            of the address. Devices that know more than the backup keep their work, take the restored
            state over and send what was lost again: docs/operations.md.
            """,
        options: [
            Option(name: "data", value: "DIR", help: "the server's data folder"),
            Option(name: "dataset", value: "NAME", help: "the data set in that folder"),
            postgresOption,
            Option(name: "in", value: "FILE", help: "the backup; its manifest is FILE.json"),
            Option(name: "replace", help: "in a data folder: take the place of what is there"),
            Option(
                name: "other-data-set",
                help: "with --replace: also if the backup is one of another data set"),
            Option(
                name: "without-grants",
                help: "in a database: leave out rights of roles, which may be missing"),
        ],
        examples: [
            Example(
                "restore --data data --dataset team --in team.backup --replace",
                "with the server stopped"),
            Example(
                "restore --postgres postgresql://app@localhost/club2 --in club.backup",
                "into a database made by createdb"),
        ]
    ) { arguments, console in
        guard let file = arguments.value("in") else {
            throw UsageError("restore needs --in FILE.", command: "restore")
        }
        switch try DataSetLocation(arguments) {
        case .file(let directory, let dataSet):
            let label = time().filter { $0.isNumber }
            let done = try EmbeddedBackup(directory: directory, dataSet: dataSet)
                .restore(
                    from: file, replaces: arguments.has("replace"),
                    acceptsOther: arguments.has("other-data-set"), label: label)
            show(done.manifest, file: file, kept: done.kept, arguments, console)
            if let tokens = done.tokens {
                console.note(
                    """
                    Good tokens of it here: \(tokens). Those revoked elsewhere after the backup are among \
                    them: see “martlet token list”.
                    """)
            }
        case .database(let address):
            let manifest = try load(
                file, into: address, withoutGrants: arguments.has("without-grants"))
            show(manifest, file: file, kept: nil, arguments, console)
        }
        return .done
    }

    static let compact = CommandDescription(
        name: "compact",
        summary: "empty old entries of a log, by hand",
        discussion: """
            Servers do this by themselves (serve --keep-revisions). By hand it gives the space back to
            the system, too; the server of a data folder is stopped for it, those of a database may go
            on. Devices further behind get the rows that changed.
            """,
        options: [
            Option(name: "data", value: "DIR", help: "the server's data folder"),
            Option(name: "dataset", value: "NAME", help: "the data set in that folder"),
            postgresOption,
            Option(
                name: "keep-revisions", value: "N", help: "change sets kept whole; default 100000"),
        ],
        examples: [
            Example("compact --data data --dataset team --keep-revisions 10000", "a file"),
            Example("compact --postgres postgresql://app@localhost/club", "a database"),
        ]
    ) { arguments, console in
        let keep = Int64(
            try arguments.integer("keep-revisions", in: 1...1_000_000_000_000, default: 100_000))
        let result =
            switch try DataSetLocation(arguments) {
            case .file(let directory, let dataSet):
                try Compaction.run(
                    directory: directory, dataSet: dataSet, keeping: keep, now: milliseconds())
            case .database(let address):
                try Compaction.run(postgres: address, keeping: keep)
            }
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("emptied", .integer(Int64(result.emptied))),
                    ("floor", .integer(result.floor)), ("revision", .integer(result.revision)),
                ]).description)
        } else {
            console.print(
                "\(result.emptied) entries emptied; those after revision \(result.floor) are whole."
            )
        }
        return .done
    }

    // MARK: - Databases

    private static func dump(_ address: PostgresAddress, _ out: String) throws -> BackupManifest {
        let files = FileManager.default
        guard !files.fileExists(atPath: out) else {
            throw CommandError("There is a file “\(out)” already; give another name.")
        }
        let unfinished = BackupManifest.unfinishedPath(of: out)
        try? files.removeItem(atPath: unfinished)
        defer { try? files.removeItem(atPath: unfinished) }
        let moment = try PostgresMoment(address)
        defer { moment.end() }
        try PostgresTools(address: address).run(
            "pg_dump", ["--format=custom", "--snapshot=\(moment.snapshot)", "--file=\(unfinished)"])
        try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: unfinished)
        let sum = try FileSum(of: unfinished)
        let manifest = BackupManifest(
            storage: .postgres, dataSet: moment.dataSet, identity: moment.identity,
            revision: moment.revision, lineage: moment.lineage, schema: moment.schema,
            time: time(), bytes: sum.bytes, sha256: sum.sha256)
        try BackupManifest.commit(unfinished, at: out)
        try manifest.write(beside: out)
        return manifest
    }

    private static func load(
        _ file: String, into address: PostgresAddress, withoutGrants: Bool
    ) throws -> BackupManifest {
        let manifest = try BackupManifest.read(of: file)
        guard manifest.storage == .postgres else {
            throw CommandError("This is a backup of a data set in a file; give --data DIR.")
        }
        try manifest.check(file)
        guard try PostgresRestoring.isEmpty(address) else {
            let what =
                (try? PostgresRestoring.isCutShort(address)) == true
                ? "holds what an earlier restore that was cut short has left" : "is not empty"
            throw CommandError(
                """
                The database (\(address)) \(what). Make one for the backup (createdb), restore \
                into it, and give the servers its address; or rename the two.
                """)
        }
        guard let name = address["dbname"] else {
            throw CommandError("The address of the database needs its name.")
        }
        try PostgresTools(address: address).run(
            "pg_restore",
            ["--dbname=\(name)", "--single-transaction", "--exit-on-error", "--no-owner"]
                + (withoutGrants ? ["--no-privileges"] : []), input: file)
        try PostgresRestoring.finish(
            address, identity: manifest.identity, revision: manifest.revision,
            lineage: manifest.lineage)
        return manifest
    }

    // MARK: - What is said

    private static func time() -> String {
        Date().formatted(.iso8601)
    }

    private static func milliseconds() -> Int64 {
        Int64((Date().timeIntervalSince1970 * 1_000).rounded())
    }

    private static func show(
        _ manifest: BackupManifest, file: String, kept: String?, _ arguments: ParsedArguments,
        _ console: Console
    ) {
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("file", .text(file)), ("dataSet", .text(manifest.dataSet)),
                    ("identity", .text(manifest.identity)),
                    ("revision", .integer(manifest.revision)),
                    ("lineage", .text(manifest.lineage)), ("schema", .text(manifest.schema)),
                    ("time", .text(manifest.time)), ("bytes", .integer(manifest.bytes)),
                    ("kept", .optional(kept)),
                ]).description)
            return
        }
        console.print(
            "\(file): data set \(manifest.dataSet) at revision \(manifest.revision), \(manifest.time)"
        )
        if let kept { console.note("What was there is kept as \(kept).") }
    }
}

/// The location of a command's data set: a folder or a database.
enum DataSetLocation {
    case file(directory: String, dataSet: String)
    case database(PostgresAddress)

    /// - Throws: `UsageError` unless exactly one of the two is given; `PostgresError` if the
    ///   address is wrong.
    init(_ arguments: ParsedArguments) throws {
        let command = arguments.command
        let environment = ProcessInfo.processInfo.environment["MARTLET_POSTGRES"]
        if let data = arguments.value("data") {
            guard arguments.value("postgres") == nil, let name = arguments.value("dataset") else {
                throw UsageError(
                    "\(command) takes --data DIR with --dataset NAME, or --postgres URL.",
                    command: command)
            }
            self = .file(directory: data, dataSet: name)
        } else if let url = arguments.value("postgres") ?? environment, !url.isEmpty {
            self = .database(try PostgresAddress(url))
        } else {
            throw UsageError(
                "\(command) needs --data DIR and --dataset NAME, or --postgres URL.",
                command: command)
        }
    }
}
