// swift-tools-version: 6.2
import Foundation
import PackageDescription

// An app that depends on the client alone. `scripts/stages/linkage` builds a copy of it and looks at
// what it was linked with. `scripts/lib/snippets.py` puts the documentation's Swift next to it: a
// module for each page.
let sources = Context.packageDirectory + "/Sources"
let pages = try FileManager.default.contentsOfDirectory(atPath: sources)
    .filter { $0.hasPrefix("Page") }.sorted()

let package = Package(
    name: "consumer",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "martlet", path: "../..")],
    targets: [
        .executableTarget(
            name: "Consumer", dependencies: [.product(name: "Martlet", package: "martlet")])
    ]
        + pages.map { page in
            .target(
                name: page, dependencies: [.product(name: "Martlet", package: "martlet")],
                swiftSettings: [
                    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
                    .enableUpcomingFeature("MemberImportVisibility"),
                ])
        }
)
