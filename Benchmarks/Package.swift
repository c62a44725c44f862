// swift-tools-version: 6.2
import Foundation
import PackageDescription

// What the store of a device does is measured without the client around it, which is open to this
// repository's own code only: it goes by the name of the folder that the repository is in.
let folder = URL(fileURLWithPath: Context.packageDirectory).deletingLastPathComponent()
let repository = folder.lastPathComponent.lowercased()

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
            packageAccess: false,
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("ExistentialAny"),
                .treatAllWarnings(as: .error),
                .unsafeFlags(["-package-name", repository]),
            ]),
    ]
)
