internal import Foundation
internal import OpenSSLKit

/// What a file's content comes to.
package struct FileSum: Hashable, Sendable {
    package let bytes: Int64
    /// In hexadecimal.
    package let sha256: String

    /// Reads a whole file, a piece at a time.
    /// - Throws: `ServerFailure` where it cannot be read.
    package init(of path: String) throws {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw ServerFailure("The file “\(path)” cannot be read; check its name and its rights.")
        }
        defer { try? file.close() }
        var hash = SHA256()
        var count: Int64 = 0
        while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty {
            hash.update([UInt8](piece))
            count += Int64(piece.count)
        }
        bytes = count
        sha256 = Hexadecimal.text(hash.finish())
    }
}
