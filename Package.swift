// swift-tools-version: 6.2
import PackageDescription

// The targets, each once, from the ground up: a target imports targets that stand before it, and names
// all that it imports. HouseRulesTests compares these lists with the imports, both ways.

// Libraries of the system, each with its Debian packages.
let libraries: [Target] = [
    system("CSQLite", "libsqlite3-dev"),
    system("CZlib", "zlib1g-dev"),
    system("CCurl", "libcurl4-openssl-dev"),
    system("CDeflate", "libdeflate-dev"),
    system("CZstd", "libzstd-dev"),
    system("CLibevent", "libevent-dev", "libssl-dev"),
    system("CWslay", "libwslay-dev"),
    system("COpenSSL", "libssl-dev"),
    system("CPostgres", "libpq-dev"),
    system("CHiredis", "libhiredis-dev"),
]

// Each kit is the only user of its library, if it has one.
let kits: [Target] = [
    kit("SystemKit"),
    kit("ConnectionKit"),
    kit("LineKit"),
    kit("RandomKit"),
    kit("SQLiteKit", "CSQLite"),
    kit("SQLiteFaults", "CSQLite", "RandomKit"),
    kit("CompressionKit", "CZlib"),
    kit("DeflateKit", "CDeflate", "CompressionKit"),
    kit("ZstdKit", "CZstd"),
    kit("CurlKit", "CCurl"),
    kit("OpenSSLKit", "COpenSSL"),
    kit("WebSocketKit", "CWslay"),
    kit("HTTPKit", "CLibevent", "WebSocketKit"),
    kit("PostgresKit", "CPostgres", "ConnectionKit"),
    kit("RedisKit", "CHiredis", "ConnectionKit"),
]

// Targets that devices and servers share.
let model: [Target] = [
    code("MartletModel"),
    code("MartletRules", "MartletModel"),
    code("MartletProtocol", "MartletModel"),
    code("SQLiteRecords", "SQLiteKit", "MartletModel", "MartletProtocol"),
    code("WebTokens", "OpenSSLKit", "MartletModel", "MartletProtocol"),
]

let device: [Target] = [
    code("MartletStore", "SystemKit", "SQLiteKit", "MartletModel", "SQLiteRecords"),
    code(
        "MartletDevice", "SQLiteKit", "CompressionKit", "MartletModel", "MartletRules",
        "MartletProtocol", "SQLiteRecords", "MartletStore"),
    code(
        "Martlet", "SystemKit", "SQLiteKit", "CompressionKit", "CurlKit", "MartletModel",
        "MartletProtocol", "SQLiteRecords", "MartletStore", "MartletDevice"),
]

let server: [Target] = [
    code(
        "MartletServerCore", "CompressionKit", "OpenSSLKit", "MartletModel", "MartletRules",
        "MartletProtocol", "SQLiteRecords"),
    code(
        "MartletEmbedded", "SQLiteKit", "MartletModel", "MartletRules", "MartletProtocol",
        "SQLiteRecords", "MartletServerCore"),
    code(
        "MartletPostgres", "SQLiteKit", "PostgresKit", "MartletModel", "MartletRules",
        "MartletProtocol", "SQLiteRecords", "MartletServerCore", "MartletEmbedded"),
    code(
        "MartletRedis", "ConnectionKit", "CompressionKit", "OpenSSLKit", "RedisKit", "MartletModel",
        "MartletProtocol", "MartletServerCore"),
    code(
        "MartletServer", "SystemKit", "ConnectionKit", "SQLiteKit", "CompressionKit", "DeflateKit",
        "ZstdKit", "OpenSSLKit", "WebSocketKit", "HTTPKit", "PostgresKit", "RedisKit",
        "MartletModel", "MartletRules", "MartletProtocol", "SQLiteRecords", "WebTokens",
        "MartletServerCore", "MartletEmbedded", "MartletPostgres", "MartletRedis"),
]

let tools: [Target] = [
    code(
        "MartletTesting", "RandomKit", "SQLiteKit", "SQLiteFaults", "CompressionKit", "HTTPKit",
        "MartletModel", "MartletRules",
        "MartletProtocol", "SQLiteRecords", "MartletStore", "MartletDevice", "Martlet",
        "MartletServerCore", "MartletEmbedded"),
    code(
        "MartletTransfer", "SystemKit", "CompressionKit", "MartletModel", "MartletProtocol",
        "SQLiteRecords", "MartletStore", "Martlet"),
    code(
        "MartletDemo", "SystemKit", "LineKit", "RandomKit", "SQLiteKit", "PostgresKit",
        "MartletModel", "MartletProtocol",
        "SQLiteRecords", "MartletStore", "MartletDevice", "Martlet", "MartletTransfer"),
    command(
        "MartletCommand", "SQLiteKit", "HTTPKit", "PostgresKit", "MartletModel", "MartletRules",
        "MartletProtocol", "SQLiteRecords",
        "MartletStore", "MartletDevice", "Martlet", "MartletServerCore", "MartletEmbedded",
        "MartletPostgres", "MartletServer", "MartletTesting", "MartletTransfer", "MartletDemo"),
]

// Targets that tests share, and programs that tests run.
let helpers: [Target] = [
    helper("Waiting"),
    kit("SocketTalk", "SystemKit", "RandomKit", "WebSocketKit", in: "Tests/Support/SocketTalk"),
    helper("TestDatabases", "SystemKit", "SocketTalk"),
    helper("TestFolders"),
    helper("TestPrograms", "SystemKit"),
    helper("AllocationCounter"),
    helper("TextComparison", "MartletTesting"),
    helper("SetTexts", "MartletModel", "MartletProtocol", "MartletServerCore"),
    helper(
        "SmallWorlds", "RandomKit", "SQLiteKit", "SQLiteFaults", "MartletModel", "MartletProtocol",
        "MartletStore", "MartletDevice", "Martlet", "MartletServerCore", "MartletEmbedded"),
    program("TestDevice", "MartletModel", "MartletStore", "MartletDevice", "Martlet"),
    program("MemoryFaults", "SQLiteFaults", "SmallWorlds"),
    program(
        "Growth", "RandomKit", "SQLiteKit", "SQLiteFaults", "MartletModel", "MartletProtocol",
        "MartletStore",
        "MartletDevice", "Martlet", "MartletServerCore", "AllocationCounter", "SetTexts",
        "SmallWorlds"),
    program(
        "StoreThresholds", "SQLiteKit", "WebSocketKit", "MartletModel", "MartletProtocol",
        "MartletStore", "MartletDevice", "Martlet", "MartletServerCore", "MartletEmbedded",
        "AllocationCounter"),
]

let suites: [Target] = [
    suite("SQLiteKitTests", "RandomKit", "SQLiteKit", "TestFolders"),
    suite("SQLiteFaultsTests", "SQLiteKit", "SQLiteFaults"),
    suite("CompressionKitTests", "CompressionKit"),
    suite("DeflateKitTests", "CompressionKit", "DeflateKit"),
    suite("SQLiteRecordsTests", "SQLiteKit", "MartletModel", "MartletProtocol", "SQLiteRecords"),
    safeSuite(
        "MartletTransferTests", "SQLiteKit", "CompressionKit", "MartletModel", "MartletProtocol",
        "MartletStore", "MartletDevice", "Martlet", "MartletServerCore", "MartletTesting",
        "MartletTransfer", "TestFolders", "SmallWorlds"),
    safeSuite(
        "MartletDemoTests", "SQLiteKit", "MartletModel", "MartletProtocol", "MartletDevice",
        "Martlet", "MartletDemo"),
    safeSuite(
        "MartletCommandTests", "SQLiteKit", "PostgresKit", "MartletModel", "MartletDevice",
        "Martlet", "MartletPostgres", "MartletServer", "MartletCommand", "TestDatabases"),
    suite(
        "MartletTests", "RandomKit", "SQLiteKit", "SQLiteFaults", "MartletModel", "MartletProtocol",
        "SQLiteRecords", "MartletStore", "MartletDevice", "Martlet", "MartletServerCore",
        "MartletEmbedded", "TextComparison", "SetTexts", "SmallWorlds"),
    suite(
        "DeviceSweepTests", "RandomKit", "SQLiteKit", "SQLiteFaults", "CompressionKit",
        "MartletModel",
        "MartletProtocol", "MartletStore", "MartletDevice", "Martlet", "MartletServerCore",
        "MartletRules", "MartletEmbedded", "MartletTesting", "Waiting", "SmallWorlds"),
    suite(
        "MartletStoreTests", "SystemKit", "SQLiteKit", "SQLiteFaults", "MartletModel",
        "MartletProtocol", "MartletStore", "Waiting", "TestFolders"),
    suite(
        "MartletServerCoreTests", "SQLiteKit", "SQLiteFaults", "MartletModel", "MartletRules",
        "MartletProtocol", "SQLiteRecords", "MartletServerCore", "MartletEmbedded",
        "MartletTesting", "SetTexts"),
    suite(
        "MartletTestingTests", "MartletModel", "MartletProtocol", "MartletStore", "MartletDevice",
        "Martlet", "MartletTesting", "Waiting", "SocketTalk"),
    suite("MartletRulesTests", "MartletModel", "MartletRules"),
    suite("HouseRulesTests"),
    suite("OpenSSLKitTests", "OpenSSLKit"),
    suite("WebTokensTests", "OpenSSLKit", "MartletModel", "WebTokens"),
    suite("CurlKitTests", "CurlKit", "Waiting", "SocketTalk"),
    suite("ZstdKitTests", "ZstdKit"),
    suite("WebSocketKitTests", "RandomKit", "WebSocketKit", "SocketTalk"),
    suite(
        "HTTPKitTests", "SystemKit", "RandomKit", "WebSocketKit", "HTTPKit", "Waiting", "SocketTalk"
    ),
    suite("SystemKitTests", "SystemKit", "TestFolders"),
    suite("ConnectionKitTests", "ConnectionKit", "Waiting"),
    suite("PostgresKitTests", "ConnectionKit", "PostgresKit", "TestDatabases"),
    suite("RedisKitTests", "ConnectionKit", "RedisKit", "Waiting", "TestDatabases"),
    suite(
        "StorageConformanceTests", "ConnectionKit", "RandomKit", "SQLiteKit", "SQLiteFaults",
        "CompressionKit",
        "PostgresKit", "RedisKit", "MartletModel", "MartletRules", "MartletProtocol",
        "SQLiteRecords", "MartletServerCore", "MartletEmbedded", "MartletPostgres", "MartletRedis",
        "TestDatabases", "TextComparison", "SetTexts"),
    suite(
        "MartletPostgresTests", "ConnectionKit", "RandomKit", "SQLiteKit", "SQLiteFaults",
        "OpenSSLKit", "PostgresKit", "MartletModel", "MartletRules", "MartletProtocol",
        "SQLiteRecords", "MartletStore", "MartletDevice", "MartletServerCore", "MartletEmbedded",
        "MartletPostgres", "Waiting", "TestDatabases", "SmallWorlds"),
    suite(
        "MartletRedisTests", "ConnectionKit", "CompressionKit", "RedisKit", "MartletServerCore",
        "MartletRedis", "TestDatabases"),
    suite(
        "PostgresServerTests", "ConnectionKit", "PostgresKit", "RedisKit", "MartletModel",
        "MartletDevice", "Martlet", "MartletServerCore", "MartletPostgres", "MartletServer",
        "Waiting", "TestDatabases"),
    safeSuite(
        "MartletProtocolTests", "RandomKit", "MartletModel", "MartletProtocol",
        without: ["Fixtures"]),
    suite(
        "MartletServerTests", "SystemKit", "SQLiteKit", "CompressionKit", "DeflateKit", "ZstdKit",
        "OpenSSLKit", "WebSocketKit", "HTTPKit", "MartletModel", "MartletProtocol", "SQLiteRecords",
        "MartletServerCore", "MartletEmbedded", "MartletRedis", "MartletServer", "Waiting",
        "SocketTalk"),
    suite(
        "FuzzCorpusTests", "ConnectionKit", "SQLiteKit", "CompressionKit", "DeflateKit", "ZstdKit",
        "OpenSSLKit", "WebSocketKit", "HTTPKit", "PostgresKit", "MartletModel", "MartletProtocol",
        "SQLiteRecords", "WebTokens", "Martlet", "MartletServerCore", "MartletRedis",
        "MartletServer", in: "Tests/Fuzzing", without: ["Corpora", "Dictionaries", "Program"]),
    suite(
        "SeedingTests", "SystemKit", "SQLiteKit", "CompressionKit", "MartletModel",
        "MartletProtocol", "SQLiteRecords", "MartletStore", "MartletDevice", "Martlet",
        "MartletServerCore", "MartletEmbedded", "MartletServer", "Waiting"),
    safeSuite("ConcurrencyTests", "MartletModel", "MartletProtocol", "Martlet", "MartletServer"),
    safeSuite(
        "LiveTests", "LineKit", "CompressionKit", "HTTPKit", "MartletModel", "MartletProtocol",
        "MartletDevice", "Martlet", "MartletServer", "Waiting", "TestPrograms", "SocketTalk"),
    safeSuite(
        "ServerProcessTests", "PostgresKit", "MartletModel", "MartletProtocol", "MartletStore",
        "MartletDevice", "Martlet", "Waiting", "TestDatabases", "TestPrograms", "SocketTalk"),
    safeSuite("SyncIntegrationTests", "MartletModel", "MartletDevice", "Martlet", "TestPrograms"),
]

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
    targets: libraries + kits + model + device + server + tools + helpers + suites
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

// MARK: - How targets are built

enum Flags {
    /// Of every Swift target: language mode 6, and warnings are errors.
    static let strict: [SwiftSetting] = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
    ]
    /// Of all but kits and most tests: a pointer outside a wrapper of a C library does not compile.
    static let safe = strict + [.strictMemorySafety()]
}

func system(_ name: String, _ packages: String...) -> Target {
    .systemLibrary(name: name, providers: [.apt(packages)])
}

func kit(_ name: String, _ imported: String..., in path: String? = nil) -> Target {
    .target(
        name: name, dependencies: dependencies(imported), path: path, swiftSettings: Flags.strict)
}

func code(_ name: String, _ imported: String...) -> Target {
    .target(name: name, dependencies: dependencies(imported), swiftSettings: Flags.safe)
}

func command(_ name: String, _ imported: String...) -> Target {
    .executableTarget(name: name, dependencies: dependencies(imported), swiftSettings: Flags.safe)
}

func helper(_ name: String, _ imported: String...) -> Target {
    .target(
        name: name, dependencies: dependencies(imported), path: "Tests/Support/\(name)",
        swiftSettings: Flags.safe)
}

func program(_ name: String, _ imported: String...) -> Target {
    .executableTarget(
        name: name, dependencies: dependencies(imported), path: "Tests/Support/\(name)",
        swiftSettings: Flags.safe)
}

func suite(
    _ name: String, _ imported: String..., in path: String? = nil, without: [String] = []
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies(imported), path: path, exclude: without,
        swiftSettings: Flags.strict)
}

func safeSuite(
    _ name: String, _ imported: String..., without: [String] = []
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies(imported), exclude: without,
        swiftSettings: Flags.safe)
}

/// On other platforms URLSession takes the place of libcurl.
func dependencies(_ names: [String]) -> [Target.Dependency] {
    names.map { name in
        name == "CurlKit"
            ? .byName(name: name, condition: .when(platforms: [.linux])) : .byName(name: name)
    }
}
