// swift-tools-version: 6.2
import PackageDescription

// An app as anyone would write it: a package of its own that sees Martlet's public API alone.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "YouthSports",
    platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [.package(name: "martlet", path: "../..")],
    targets: [
        .target(
            name: "YouthSports",
            dependencies: [
                .product(name: "Martlet", package: "martlet"),
                .product(name: "MartletStore", package: "martlet"),
            ], swiftSettings: strict),
        .executableTarget(
            name: "YouthCommand", dependencies: ["YouthSports"], swiftSettings: strict),
        .testTarget(
            name: "YouthSportsTests",
            dependencies: [
                "YouthSports", .product(name: "MartletTesting", package: "martlet"),
            ], swiftSettings: strict),
    ]
)
