import Foundation
import MartletServer

extension CommandDescription {
    static let serve = CommandDescription(
        name: "serve",
        summary: "run the server",
        discussion: """
            With --schema every data set is a SQLite file in the data folder; the schema is the same
            for all of them, and one that adds types or attributes is taken up at the next start. With
            --postgres every data set is a database, made or taken over by `martlet postgres`; any
            number of servers may serve the same one, each with a data folder of its own. Addresses
            may stand in MARTLET_POSTGRES and MARTLET_REDIS instead, where other users of this machine
            do not see their passwords. Stops in good order on SIGTERM and SIGINT: what was accepted is finished. Log lines go to standard
            error, one JSON object each. In production put nginx in front, or give --tls-cert.
            """,
        options: [
            Option(
                name: "data", value: "DIR",
                help: "the folder that holds everything; made if missing"),
            Option(name: "schema", value: "FILE", help: "the tables as SQL CREATE statements"),
            Option(
                name: "postgres", value: "URL",
                help: "a database with a data set, in place of --schema; may be repeated",
                repeats: true),
            Option(
                name: "redis", value: "URL",
                help: "holds recent change sets for the servers of a database"),
            Option(name: "port", value: "N", help: "default 8080; 0 takes a free one"),
            Option(name: "host", value: "ADDRESS", help: "default 127.0.0.1; 0.0.0.0 for all"),
            Option(
                name: "token", value: "DATASET:TOKEN",
                help: "a token for trials; may be repeated. Others on this machine may see it",
                repeats: true),
            Option(
                name: "jwt-keys", value: "FILE",
                help: "keys of an issuer's tokens, PEM or JWK Set; docs/tokens.md"),
            Option(name: "jwt-audience", value: "NAME", help: "what their aud must contain"),
            Option(name: "jwt-issuer", value: "NAME", help: "what their iss must be"),
            Option(
                name: "jwt-leeway", value: "SECONDS",
                help: "by which the clocks may differ; default 60"),
            Option(
                name: "rules", value: "FILE",
                help: "who may do what: docs/rules.md, or policies in SQL, docs/policies.md"),
            Option(
                name: "seeding", value: "FILE",
                help: "in which classes new devices fetch the data; docs/seeding.md"),
            Option(
                name: "snapshot-every", value: "N",
                help: "make a snapshot after N revisions; default 10000"),
            Option(
                name: "view-snapshots", value: "N",
                help: "of views that policies show, for each data set; default 16"),
            Option(
                name: "view-snapshot-mib", value: "MIB",
                help: "disk for them, for each data set; default 1024"),
            Option(
                name: "keep-revisions", value: "N",
                help: "change sets kept whole, or all; default 100000; docs/command-line.md"),
            Option(
                name: "cache", value: "MIB",
                help: "memory for the newest change sets of each data set; default 64"),
            Option(name: "tls-cert", value: "FILE", help: "certificate chain, PEM"),
            Option(name: "tls-key", value: "FILE", help: "its private key, PEM"),
            Option(
                name: "allow-origin", value: "ORIGIN",
                help: "pages that may open a WebSocket, beside the server's own; may be repeated",
                repeats: true),
            Option(
                name: "log", value: "LEVEL", help: "debug, info, warning or error; default info"),
        ],
        examples: [
            Example(
                "serve --data data --schema schema.sql --token team:falcon-secret", "a first try"),
            Example(
                "serve --data data --postgres postgresql://martlet@db.example.org/app"
                    + "?sslmode=verify-full --redis redis://cache.example.org",
                "on a database that other programs use too"),
            Example(
                "serve --data data --schema schema.sql --rules rules.json --tls-cert cert.pem"
                    + " --tls-key key.pem --host 0.0.0.0 --port 443",
                "for devices elsewhere, with tokens from `martlet token create`"),
        ]
    ) { arguments, console in
        let configuration = try configuration(arguments)
        let scheme = configuration.tlsCertificatePath == nil ? "http" : "https"
        let host = configuration.host
        try await MartletServer.run(configuration) { port in
            console.print("listening on \(scheme)://\(host):\(port)")
        }
        return .done
    }

    private static func configuration(
        _ arguments: ParsedArguments
    ) throws -> ServerConfiguration {
        var configuration = try storageConfiguration(arguments)
        configuration.port = try arguments.integer("port", in: 0...65_535, default: 8_080)
        configuration.host = arguments.value("host") ?? "127.0.0.1"
        configuration.tokens = try (arguments.values["token"] ?? []).map { try FixedToken($0) }
        configuration.signedTokens = try signedTokens(arguments)
        configuration.rules = try arguments.value("rules").map { try contents($0, "rules") }
        configuration.seeding = try arguments.value("seeding").map { try contents($0, "seeding") }
        configuration.snapshotEvery = Int64(
            try arguments.integer("snapshot-every", in: 1...1_000_000_000, default: 10_000))
        configuration.viewSnapshots.count = try arguments.integer(
            "view-snapshots", in: 0...10_000, default: 16)
        configuration.viewSnapshots.bytes =
            Int64(try arguments.integer("view-snapshot-mib", in: 1...1_048_576, default: 1_024))
            << 20
        configuration.keepRevisions = try keepRevisions(arguments)
        configuration.cacheBytes =
            try arguments.integer("cache", in: 1...65_536, default: 64) << 20
        configuration.tlsCertificatePath = arguments.value("tls-cert")
        configuration.tlsKeyPath = arguments.value("tls-key")
        configuration.allowedOrigins = arguments.values["allow-origin"] ?? []
        configuration.log = .standardError(minimum: try level(arguments))
        return configuration
    }

    private static func signedTokens(
        _ arguments: ParsedArguments
    ) throws -> SignedTokenSettings? {
        guard let keys = arguments.value("jwt-keys") else {
            for name in ["jwt-audience", "jwt-issuer", "jwt-leeway"]
            where arguments.value(name) != nil {
                throw UsageError("--\(name) needs --jwt-keys FILE.", command: "serve")
            }
            return nil
        }
        var settings = SignedTokenSettings(keyFile: keys)
        settings.audience = arguments.value("jwt-audience")
        settings.issuer = arguments.value("jwt-issuer")
        settings.leeway = Int64(try arguments.integer("jwt-leeway", in: 0...3_600, default: 60))
        return settings
    }

    /// Returns the configuration for data sets in files or in databases.
    private static func storageConfiguration(
        _ arguments: ParsedArguments
    ) throws -> ServerConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let given = arguments.values["postgres"] ?? []
        let schema = arguments.value("schema")
        guard let data = arguments.value("data") else {
            throw UsageError("serve needs --data DIR.", command: "serve")
        }
        guard schema == nil || given.isEmpty else {
            throw UsageError(
                "--schema does not go with --postgres: the database's tables are the schema.",
                command: "serve")
        }
        if let schema {
            guard arguments.value("redis") == nil else {
                throw UsageError("--redis goes with --postgres.", command: "serve")
            }
            return ServerConfiguration(dataDirectory: data, schema: try SchemaFiles.read(schema))
        }
        let addresses =
            given.isEmpty
            ? (environment["MARTLET_POSTGRES"] ?? "").split(separator: " ").map(String.init) : given
        guard !addresses.isEmpty else {
            throw UsageError(
                "serve needs --schema FILE, or --postgres URL (or MARTLET_POSTGRES).",
                command: "serve")
        }
        return ServerConfiguration(
            dataDirectory: data, postgres: addresses,
            redis: arguments.value("redis") ?? environment["MARTLET_REDIS"])
    }

    private static func keepRevisions(_ arguments: ParsedArguments) throws -> Int64? {
        if arguments.value("keep-revisions") == "all" { return nil }
        return Int64(
            try arguments.integer("keep-revisions", in: 1...1_000_000_000_000, default: 100_000))
    }

    private static func contents(_ path: String, _ what: String) throws -> [UInt8] {
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw CommandError("The \(what) file \(path) cannot be read.")
        }
        return [UInt8](bytes)
    }

    private static func level(_ arguments: ParsedArguments) throws -> ServerLog.Level {
        switch arguments.value("log") ?? "info" {
        case "debug": .debug
        case "info": .info
        case "warning": .warning
        case "error": .error
        default:
            throw UsageError("--log takes debug, info, warning or error.", command: "serve")
        }
    }
}
