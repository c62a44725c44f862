// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that users of Martlet never build it or install what it compares with.
let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "martlet", path: "..")],
    targets: [
        .systemLibrary(name: "CYajl", providers: [.apt(["libyajl-dev"])]),
        .target(
            name: "CLoad",
            linkerSettings: [
                .linkedLibrary("sqlite3"), .linkedLibrary("event"), .linkedLibrary("z"),
            ]),
        .target(name: "CStore", linkerSettings: [.linkedLibrary("sqlite3")]),
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "CYajl", "CLoad", "CStore",
                .product(name: "Martlet", package: "martlet"),
                .product(name: "MartletServer", package: "martlet"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("ExistentialAny"),
                .treatAllWarnings(as: .error),
            ]),
    ]
)
