// swift-tools-version: 6.2
import PackageDescription

// An app that depends on the client alone. `scripts/stages/60-linkage` builds it and looks at what
// it was linked with.
let package = Package(
    name: "consumer",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "martlet", path: "../..")],
    targets: [
        .executableTarget(
            name: "Consumer", dependencies: [.product(name: "Martlet", package: "martlet")])
    ]
)
