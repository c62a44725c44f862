internal import Foundation
internal import OpenSSLKit

/// The size and the hash of a file's content.
package struct FileSum: Hashable, Sendable {
    package let bytes: Int64
    /// The hash, in hexadecimal.
    package let sha256: String

    /// Reads a whole file, one piece at a time.
    ///
    /// - Throws: `ServerFailure` if it cannot be opened; Foundation's error if a read fails.
    /// - Complexity: O(*n*) in the bytes of the file.
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
