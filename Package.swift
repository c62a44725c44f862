// swift-tools-version: 6.2
import PackageDescription

/// Flags every Swift target builds with: language mode 6, and warnings are errors.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// Everything but the wrappers of C libraries also builds with strict memory safety: a pointer
/// outside a wrapper does not compile.
let safe: [SwiftSetting] = strict + [.strictMemorySafety()]

let package = Package(
    name: "martlet",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "Martlet", targets: ["Martlet"]),
        .library(name: "MartletStore", targets: ["MartletStore"]),
        .library(name: "MartletServer", targets: ["MartletServer"]),
        .library(name: "MartletTesting", targets: ["MartletTesting"]),
        .executable(name: "martlet", targets: ["MartletCommand"]),
    ],
    targets: [
        // C libraries, from the system.
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CDeflate", providers: [.apt(["libdeflate-dev"])]),
        .systemLibrary(name: "CZstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CLibevent", providers: [.apt(["libevent-dev", "libssl-dev"])]),
        .systemLibrary(name: "CWslay", providers: [.apt(["libwslay-dev"])]),
        .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CPostgres", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),

        // Kits: each is the only user of its C library.
        .target(name: "SQLiteKit", dependencies: ["CSQLite"], swiftSettings: strict),
        .target(name: "SQLiteFaults", dependencies: ["CSQLite"], swiftSettings: strict),
        .target(name: "CompressionKit", dependencies: ["CZlib"], swiftSettings: strict),
        .target(
            name: "DeflateKit", dependencies: ["CDeflate", "CompressionKit"], swiftSettings: strict),
        .target(name: "CurlKit", dependencies: ["CCurl"], swiftSettings: strict),
        .target(name: "ZstdKit", dependencies: ["CZstd"], swiftSettings: strict),
        .target(name: "OpenSSLKit", dependencies: ["COpenSSL"], swiftSettings: strict),
        .target(name: "WebSocketKit", dependencies: ["CWslay"], swiftSettings: strict),
        .target(
            name: "HTTPKit", dependencies: ["CLibevent", "WebSocketKit"], swiftSettings: strict),
        .target(name: "SystemKit", swiftSettings: strict),
        .target(name: "ConnectionKit", swiftSettings: strict),
        // A line that is slow and breaks, for demonstrations and tests.
        .target(name: "LineKit", swiftSettings: strict),
        .target(
            name: "PostgresKit", dependencies: ["CPostgres", "ConnectionKit"],
            swiftSettings: strict),
        .target(
            name: "RedisKit", dependencies: ["CHiredis", "ConnectionKit"], swiftSettings: strict),

        // What both sides share.
        .target(name: "MartletProtocol", swiftSettings: safe),
        .target(name: "MartletCore", dependencies: ["MartletProtocol"], swiftSettings: safe),
        .target(
            name: "WebTokens", dependencies: ["MartletProtocol", "OpenSSLKit"],
            swiftSettings: safe),
        .target(
            name: "SQLiteRecords", dependencies: ["MartletProtocol", "MartletCore", "SQLiteKit"],
            swiftSettings: safe),

        .testTarget(
            name: "SQLiteKitTests", dependencies: ["SQLiteKit"], swiftSettings: strict),
        .testTarget(
            name: "SQLiteFaultsTests", dependencies: ["SQLiteFaults", "SQLiteKit"],
            swiftSettings: strict),
        .testTarget(
            name: "CompressionKitTests", dependencies: ["CompressionKit"], swiftSettings: strict),
        .testTarget(
            name: "DeflateKitTests", dependencies: ["DeflateKit", "CompressionKit"],
            swiftSettings: strict),
        .testTarget(
            name: "SQLiteRecordsTests",
            dependencies: ["MartletProtocol", "MartletCore", "SQLiteKit", "SQLiteRecords"],
            swiftSettings: strict),

        // The server.
        .target(
            name: "MartletServerCore",
            dependencies: [
                "MartletProtocol", "MartletCore", "SQLiteKit", "SQLiteRecords", "CompressionKit",
                "OpenSSLKit",
            ], swiftSettings: safe),
        .target(
            name: "MartletPostgres",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletServerCore", "SQLiteKit",
                "SQLiteRecords", "OpenSSLKit", "ConnectionKit", "PostgresKit",
            ], swiftSettings: safe),
        .target(
            name: "MartletRedis",
            dependencies: [
                "MartletProtocol", "MartletServerCore", "CompressionKit", "OpenSSLKit",
                "ConnectionKit", "RedisKit",
            ], swiftSettings: safe),
        .target(
            name: "MartletServer",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletServerCore", "MartletPostgres",
                "MartletRedis", "SQLiteKit",
                "SQLiteRecords", "CompressionKit", "DeflateKit", "ZstdKit", "OpenSSLKit", "HTTPKit",
                "WebSocketKit", "ConnectionKit", "PostgresKit", "RedisKit", "WebTokens",
                "SystemKit",
            ], swiftSettings: safe),

        // The device.
        .target(
            name: "MartletStore",
            dependencies: [
                "MartletProtocol", "MartletCore", "SQLiteKit", "SQLiteRecords", "SystemKit",
            ],
            swiftSettings: safe),
        .target(
            name: "Martlet",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "SQLiteKit", "SQLiteRecords",
                "CompressionKit", "SystemKit",
                // Other platforms use URLSession.
                .byName(name: "CurlKit", condition: .when(platforms: [.linux])),
            ], swiftSettings: safe),

        // Tools.
        .target(
            name: "MartletTesting",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "Martlet", "MartletServerCore",
                "SQLiteKit", "SQLiteRecords", "SQLiteFaults", "CompressionKit", "HTTPKit",
            ], swiftSettings: safe),
        .target(
            name: "MartletTransfer",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "Martlet", "SQLiteKit",
                "SQLiteRecords", "CompressionKit", "SystemKit",
            ], swiftSettings: safe),
        .target(
            name: "MartletDemo",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "Martlet", "SQLiteKit",
                "SQLiteRecords", "MartletServer", "MartletTransfer", "CompressionKit",
                "MartletPostgres", "PostgresKit", "ConnectionKit", "LineKit",
            ], swiftSettings: safe),
        .executableTarget(
            name: "MartletCommand",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "Martlet", "MartletServer",
                "MartletServerCore", "MartletTesting", "MartletTransfer", "MartletDemo",
                "MartletPostgres", "PostgresKit", "ConnectionKit", "HTTPKit", "SQLiteKit",
                "SQLiteRecords", "CompressionKit",
            ], swiftSettings: safe),

        .testTarget(
            name: "MartletTransferTests",
            dependencies: [
                "MartletTransfer", "Martlet", "MartletStore", "MartletCore", "MartletProtocol",
                "CompressionKit", "MartletServerCore", "MartletTesting", "SmallWorlds", "SQLiteKit",
            ], swiftSettings: safe),
        .testTarget(
            name: "MartletDemoTests",
            dependencies: [
                "MartletDemo", "MartletTransfer", "Martlet", "MartletCore", "MartletProtocol",
                "SQLiteKit",
            ], swiftSettings: safe),
        .testTarget(
            name: "MartletCommandTests",
            dependencies: [
                "MartletCommand", "Martlet", "MartletServer", "MartletPostgres", "PostgresKit",
                "SQLiteKit",
                "TestDatabases",
            ], swiftSettings: safe),
        .testTarget(
            name: "MartletTests",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "Martlet", "SQLiteKit",
                "SQLiteFaults", "MartletServerCore", "SmallWorlds", "CompressionKit",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DeviceSweepTests",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "Martlet", "MartletTesting",
                "SQLiteKit", "SQLiteFaults", "MartletServerCore", "SmallWorlds", "CompressionKit",
                "Waiting",
            ],
            swiftSettings: strict),
        .target(
            name: "SmallWorlds",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "Martlet", "MartletServerCore",
                "SQLiteKit", "SQLiteFaults",
            ], path: "Tests/SmallWorlds", swiftSettings: safe),
        .executableTarget(
            name: "MemoryFaults", dependencies: ["SmallWorlds", "SQLiteFaults"],
            path: "Tests/MemoryFaults", swiftSettings: safe),
        .executableTarget(
            name: "Growth",
            dependencies: [
                "AllocationCounter", "Martlet", "MartletCore", "MartletProtocol",
                "MartletServerCore", "MartletStore", "SQLiteFaults", "SQLiteKit", "SetTexts",
                "SmallWorlds",
            ],
            path: "Tests/Growth", swiftSettings: safe),
        .testTarget(
            name: "MartletStoreTests",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletStore", "SQLiteKit", "SQLiteFaults",
                "SystemKit", "Waiting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MartletCoreTests", dependencies: ["MartletProtocol", "MartletCore"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletServerCoreTests",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletServerCore", "SQLiteKit",
                "SQLiteRecords", "SQLiteFaults", "CompressionKit", "MartletTesting", "SetTexts",
            ], swiftSettings: strict),
        .testTarget(
            name: "MartletTestingTests",
            dependencies: [
                "MartletTesting", "Martlet", "MartletStore", "MartletProtocol", "SocketTalk",
                "Waiting",
            ],
            swiftSettings: strict),
        .testTarget(name: "HouseRulesTests", swiftSettings: strict),
        .testTarget(
            name: "OpenSSLKitTests", dependencies: ["OpenSSLKit"], swiftSettings: strict),
        .testTarget(
            name: "WebTokensTests",
            dependencies: ["WebTokens", "MartletProtocol", "OpenSSLKit"], swiftSettings: strict),
        .testTarget(
            name: "CurlKitTests", dependencies: ["CurlKit", "HTTPKit", "SocketTalk", "Waiting"],
            swiftSettings: strict),
        .testTarget(name: "ZstdKitTests", dependencies: ["ZstdKit"], swiftSettings: strict),
        .target(name: "Waiting", path: "Tests/Waiting", swiftSettings: safe),
        .target(
            name: "SetTexts", dependencies: ["MartletProtocol"], path: "Tests/SetTexts",
            swiftSettings: safe),
        .target(
            name: "SocketTalk", dependencies: ["WebSocketKit", "SystemKit"],
            path: "Tests/SocketTalk",
            swiftSettings: strict),
        .testTarget(
            name: "WebSocketKitTests", dependencies: ["WebSocketKit", "SocketTalk"],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPKitTests",
            dependencies: ["HTTPKit", "WebSocketKit", "SystemKit", "SocketTalk", "Waiting"],
            swiftSettings: strict),
        .testTarget(name: "SystemKitTests", dependencies: ["SystemKit"], swiftSettings: strict),
        .testTarget(
            name: "ConnectionKitTests", dependencies: ["ConnectionKit", "Waiting"],
            swiftSettings: strict),
        .target(name: "TestDatabases", path: "Tests/TestDatabases", swiftSettings: safe),
        .testTarget(
            name: "PostgresKitTests",
            dependencies: ["ConnectionKit", "PostgresKit", "TestDatabases"],
            swiftSettings: strict),
        .testTarget(
            name: "RedisKitTests",
            dependencies: ["ConnectionKit", "RedisKit", "TestDatabases", "Waiting"],
            swiftSettings: strict),

        .testTarget(
            name: "StorageConformanceTests",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletServerCore", "MartletPostgres",
                "MartletRedis", "PostgresKit", "RedisKit", "ConnectionKit", "SQLiteKit",
                "SQLiteRecords", "SQLiteFaults", "CompressionKit", "TestDatabases", "SetTexts",
            ], swiftSettings: strict),
        .testTarget(
            name: "MartletPostgresTests",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletServerCore", "MartletPostgres",
                "PostgresKit", "ConnectionKit", "SQLiteKit", "SQLiteRecords", "TestDatabases",
                "Waiting",
            ], swiftSettings: strict),
        .testTarget(
            name: "MartletRedisTests",
            dependencies: [
                "MartletProtocol", "MartletCore", "MartletServerCore", "MartletRedis", "RedisKit",
                "ConnectionKit", "CompressionKit", "TestDatabases", "Waiting",
            ], swiftSettings: strict),
        .testTarget(
            name: "PostgresServerTests",
            dependencies: [
                "Martlet", "MartletStore", "MartletProtocol", "MartletCore", "MartletServerCore",
                "MartletPostgres", "MartletRedis", "MartletServer", "PostgresKit", "RedisKit",
                "ConnectionKit", "SQLiteKit", "SQLiteRecords", "HTTPKit", "WebTokens",
                "OpenSSLKit", "TestDatabases", "TestPrograms", "Waiting",
            ], swiftSettings: strict),

        // Tests.
        .testTarget(
            name: "MartletProtocolTests", dependencies: ["MartletProtocol"],
            exclude: ["Fixtures"], swiftSettings: safe),
        .testTarget(
            name: "MartletServerTests",
            dependencies: [
                "MartletServer", "MartletProtocol", "MartletCore", "MartletServerCore", "SQLiteKit",
                "SQLiteRecords", "HTTPKit", "DeflateKit", "CompressionKit", "ZstdKit",
                "WebSocketKit", "SocketTalk", "Waiting", "OpenSSLKit", "MartletRedis",
            ], swiftSettings: strict),
        .testTarget(
            name: "FuzzCorpusTests",
            dependencies: [
                "Martlet", "MartletProtocol", "MartletCore", "MartletRedis", "MartletServer",
                "MartletServerCore", "SQLiteKit", "SQLiteRecords", "CompressionKit", "DeflateKit",
                "ZstdKit", "OpenSSLKit", "WebSocketKit", "HTTPKit", "WebTokens", "ConnectionKit",
                "PostgresKit",
            ], path: "Tests/Fuzzing", exclude: ["Corpora", "Dictionaries", "Program"],
            swiftSettings: strict),
        .testTarget(
            name: "SeedingTests",
            dependencies: [
                "Martlet", "MartletStore", "MartletProtocol", "MartletCore", "MartletServer",
                "MartletServerCore", "SQLiteKit", "SQLiteRecords", "CompressionKit", "SystemKit",
                "Waiting",
            ], swiftSettings: strict),
        .testTarget(
            name: "ConcurrencyTests",
            dependencies: ["Martlet", "MartletProtocol", "MartletServer"], swiftSettings: safe),
        .testTarget(
            name: "LiveTests",
            dependencies: [
                "Martlet", "MartletProtocol", "MartletCore", "MartletServer", "CompressionKit",
                "HTTPKit", "LineKit", "SocketTalk", "TestPrograms", "Waiting",
            ], swiftSettings: safe),
        .target(
            name: "AllocationCounter", path: "Tests/AllocationCounter", swiftSettings: safe),
        .executableTarget(
            name: "StoreThresholds",
            dependencies: [
                "AllocationCounter", "Martlet", "MartletCore", "MartletProtocol",
                "MartletServerCore", "MartletStore", "SQLiteKit", "WebSocketKit",
            ],
            path: "Tests/StoreThresholds", swiftSettings: safe),
        .executableTarget(
            name: "TestDevice",
            dependencies: ["Martlet", "MartletCore", "MartletProtocol", "MartletStore"],
            path: "Tests/TestDevice", swiftSettings: safe),
        .target(name: "TestPrograms", path: "Tests/TestPrograms", swiftSettings: safe),
        .testTarget(
            name: "ServerProcessTests",
            dependencies: [
                "Martlet", "MartletCore", "MartletProtocol", "MartletStore", "PostgresKit",
                "SocketTalk", "TestDatabases", "TestPrograms", "Waiting",
            ],
            swiftSettings: safe),
        .testTarget(
            name: "SyncIntegrationTests",
            dependencies: [
                "Martlet", "MartletCore", "MartletProtocol", "MartletStore", "TestPrograms",
            ],
            swiftSettings: safe),
    ]
)

// Building all tests takes minutes. A check that runs some of them, under a sanitizer say, names
// their targets in this variable, with commas between, and no other tests are built. After a minus
// sign stand those that are not built, and all others are.
if let named = Context.environment["MARTLET_TEST_TARGETS"] {
    let leavesOut = named.hasPrefix("-")
    let targets = Set(named.drop { $0 == "-" }.split(separator: ",").map(String.init))
    let missing = targets.subtracting(package.targets.filter { $0.type == .test }.map(\.name))
    precondition(missing.isEmpty, "there are no test targets \(missing.sorted())")
    package.targets.removeAll { $0.type == .test && targets.contains($0.name) == leavesOut }
}

// Loops over bytes take several times as long without the optimizer. The checks name the targets that
// they want optimized in this variable, with commas between.
if let named = Context.environment["MARTLET_OPTIMIZED_TARGETS"] {
    let wanted = Set(named.split(separator: ",").map(String.init))
    let missing = wanted.subtracting(package.targets.map(\.name))
    precondition(missing.isEmpty, "there are no targets \(missing.sorted())")
    for target in package.targets where wanted.contains(target.name) {
        target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-O"])]
    }
}
