package import Foundation

/// An empty folder of a test's own, which only the current user may read. It is removed together with the
/// last reference to it.
package final class TemporaryFolder: Sendable {
    package let url: URL
    package var path: String { url.path }

    package init() throws {
        url = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// Returns the names of everything in it, hidden files too.
    package func listing() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }
}
