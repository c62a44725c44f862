/// The targets of the package: what each may import, and which rules of the core it keeps.
///
/// A target stands above everything it lists. The lists are what `ARCHITECTURE.md` draws; a new
/// arrow is a decision, so it is added here by hand.
enum House {
    static let kits: [String: Set<String>] = [
        "SQLiteKit": ["CSQLite"],
        "SQLiteFaults": ["CSQLite"],
        "CompressionKit": ["CZlib"],
        "CurlKit": ["CCurl"],
        "DeflateKit": ["CDeflate"],
        "ZstdKit": ["CZstd"],
        "OpenSSLKit": ["COpenSSL"],
        "WebSocketKit": ["CWslay"],
        "HTTPKit": ["CLibevent"],
        "SystemKit": ["Security"],
        "ConnectionKit": [],
        "LineKit": [],
        "PostgresKit": ["CPostgres"],
        "RedisKit": ["CHiredis"],
    ]

    /// All modules of C libraries.
    static let cModules = Set(kits.values.flatMap(\.self))

    /// From the ground up; each target may import targets that stand before it in its own list.
    static let imports: [String: Set<String>] = [
        "SQLiteKit": [],
        "SQLiteFaults": [],
        "CompressionKit": [],
        "DeflateKit": ["CompressionKit"],
        "ZstdKit": [],
        "CurlKit": [],
        "OpenSSLKit": [],
        "WebSocketKit": [],
        "HTTPKit": ["WebSocketKit"],
        "SystemKit": [],
        "ConnectionKit": [],
        "LineKit": [],
        "PostgresKit": ["ConnectionKit"],
        "RedisKit": ["ConnectionKit"],
        "MartletProtocol": [],
        "MartletCore": ["MartletProtocol"],
        "WebTokens": ["MartletProtocol", "OpenSSLKit"],
        "SQLiteRecords": ["MartletProtocol", "MartletCore", "SQLiteKit"],
        "MartletStore": [
            "MartletProtocol", "MartletCore", "SQLiteKit", "SQLiteRecords", "SystemKit",
        ],
        "Martlet": device.union(["SystemKit", "CurlKit"]),
        "MartletServerCore": serverCore,
        "MartletPostgres": serverCore.union([
            "MartletServerCore", "ConnectionKit", "PostgresKit",
        ]),
        "MartletRedis": serverCore.union(["MartletServerCore", "ConnectionKit", "RedisKit"]),
        "MartletServer": serverCore.union([
            "MartletServerCore", "MartletPostgres", "MartletRedis", "DeflateKit", "ZstdKit",
            "HTTPKit", "WebSocketKit", "ConnectionKit", "PostgresKit", "RedisKit", "WebTokens",
            "SystemKit",
        ]),
        "MartletTesting": device.union(serverCore).union([
            "Martlet", "MartletServerCore", "SQLiteFaults", "HTTPKit",
        ]),
        "MartletTransfer": device.union(["Martlet", "SystemKit"]),
        "MartletDemo": device.union([
            "Martlet", "MartletServer", "MartletTransfer", "MartletPostgres", "PostgresKit",
            "ConnectionKit", "LineKit",
        ]),
        "MartletCommand": device.union([
            "Martlet", "MartletServer", "MartletServerCore", "MartletTesting",
            "MartletTransfer", "MartletDemo", "MartletPostgres", "PostgresKit", "ConnectionKit",
            "HTTPKit",
        ]),
    ]

    private static let device: Set = [
        "MartletProtocol", "MartletCore", "MartletStore", "SQLiteKit", "SQLiteRecords",
        "CompressionKit",
    ]
    private static let serverCore: Set = [
        "MartletProtocol", "MartletCore", "SQLiteKit", "SQLiteRecords", "CompressionKit",
        "OpenSSLKit",
    ]

    /// Targets that take time, randomness and identifiers from their callers and do no input or
    /// output but SQLite's.
    private static let deterministic: Set = [
        "MartletProtocol", "MartletCore", "SQLiteRecords", "MartletServerCore", "MartletStore",
    ]

    /// Folders of such targets that are shells all the same: queues, timers and files live there.
    private static let shells = ["Sources/MartletStore/Pool/", "Sources/MartletStore/Places/"]

    static func isDeterministic(_ file: SourceFile) -> Bool {
        if shells.contains(where: { file.path.hasPrefix($0) }) { return false }
        if let target = file.target, deterministic.contains(target) { return true }
        return file.path.hasPrefix("Sources/Martlet/Device")
    }

    static func isKit(_ file: SourceFile) -> Bool {
        file.target.map { kits[$0] != nil } ?? false
    }
}
