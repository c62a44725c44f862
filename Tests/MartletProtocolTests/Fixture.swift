import Foundation

/// A file of `Fixtures`.
enum Fixture {
    static func bytes(_ name: String) throws -> [UInt8] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        return [UInt8](try Data(contentsOf: folder.appending(path: "Fixtures/\(name).json")))
    }
}
