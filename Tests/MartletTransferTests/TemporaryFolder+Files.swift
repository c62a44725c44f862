import CompressionKit
import Foundation
import TestFolders

extension TemporaryFolder {
    /// Writes a file; one called `.gz` is compressed.
    func write(_ name: String, _ text: String) throws {
        let bytes = [UInt8](text.utf8)
        try write(name, bytes: name.hasSuffix(".gz") ? Gzip.compress(bytes) : bytes)
    }

    func write(_ name: String, bytes: [UInt8]) throws {
        try Data(bytes).write(to: url.appendingPathComponent(name))
    }

    func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: url.appendingPathComponent(name)))
    }

    func text(_ name: String) throws -> String {
        String(decoding: try bytes(name), as: UTF8.self)
    }
}

enum Gzipped {
    static func of(_ text: String) -> [UInt8] {
        Gzip.compress([UInt8](text.utf8))
    }
}
