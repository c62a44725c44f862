public import Foundation
internal import Synchronization
package import SystemKit

/// Stores files by name in one folder, such as pictures, documents and other data that is too large
/// for a row. The database stores the names.
///
/// ```swift
/// let pictures = FileStore(folder: folder)
/// try await pictures.write(png, as: "\(id).png")
/// let picture = try await pictures.data(of: "\(id).png")
/// ```
///
/// A file is replaced as a whole. Every reader, in this process or another, sees the old one or the
/// new one, and so does the next start after a kill or a power cut. If a killed process left a
/// half-written file, the next process's first write removes it.
///
/// The folder and the files are open to their owner alone; the folder is created with the first
/// file. A name has 1 to 255 bytes of UTF-8, has no “/” and no control characters, and does not
/// begin with “.”. The file system decides whether upper and lower case, or two spellings of “é”,
/// are different names. Names made of hashes or ids avoid the question.
///
/// A read never waits for a write, and neither blocks a thread that runs tasks. Every call throws
/// `StoreError`: `.value` for a name that is not allowed, `.unknown` for a missing file,
/// `.diskFull`, `.inputOutput` if this user has no permission, `.readOnly`, and `.file` if a folder
/// or a link is in place of the file. After an error, the file is completely the old one or the new
/// one.
public final class FileStore: Sendable {
    /// The folder's path.
    public let folder: String
    private let reader: Confined<StateFolder>
    private let writer: Confined<StateFolder>

    /// Creates a store for a folder. It does not read or create anything yet.
    public convenience init(folder: String) {
        self.init(folder: folder, faults: nil)
    }

    package init(folder: String, faults: FileFaults?) {
        self.folder = folder
        reader = Confined(
            label: "martlet.files.reader", StateFolder(path: folder, faults: faults))
        writer = Confined(
            label: "martlet.files.writer", StateFolder(path: folder, faults: faults))
    }

    /// Writes a file under a name, and replaces an earlier one.
    /// - Throws: `StoreError`; see `FileStore`.
    /// - Complexity: O(*n*), *n* bytes.
    public func write(_ data: Data, as name: String) async throws {
        try FileName.check(name)
        try await writer.run { folder in
            try folder.made { try $0.write([UInt8](data), as: name) }
        }
    }

    /// Copies a file under a name, piece by piece, and replaces an earlier one. Stops if the task
    /// is cancelled.
    /// - Parameters:
    ///   - url: The URL of a file on this device.
    ///   - name: The name of the copy.
    /// - Throws: `StoreError`; see `FileStore`. `.cancelled` if the task is cancelled.
    /// - Complexity: O(*n*), *n* bytes.
    public func copy(from url: URL, as name: String) async throws {
        try FileName.check(name)
        guard url.isFileURL else {
            throw StoreError(
                .value,
                "A file is copied from this device, and the URL leads elsewhere. Fetch it"
                    + " first.")
        }
        let isWanted = Flag()
        try await withTaskCancellationHandler {
            try await writer.run { folder in
                try folder.made { made in
                    let source = try OpenFile(readingFrom: url.path)
                    guard try source.facts().form == .file else { throw Self.notAFile }
                    try made.write(copyOf: source, as: name, while: { isWanted.isUp })
                }
            }
        } onCancel: {
            isWanted.lower()
        }
    }

    /// Returns the content of a file.
    /// - Throws: `StoreError`; see `FileStore`.
    /// - Complexity: O(*n*), *n* bytes.
    public func data(of name: String) async throws -> Data {
        try await reading(name) { folder in
            guard let file = try folder.file(name) else { return nil }
            return Data(try file.rest())
        }
    }

    /// Returns the length of a file in bytes.
    /// - Throws: `StoreError`; see `FileStore`.
    public func size(of name: String) async throws -> Int64 {
        try await reading(name) { try Self.facts($0, name)?.size }
    }

    /// Returns the URL of a file, for code that opens it directly. To change the file, write it
    /// again with `write`: a change in place can be seen half done.
    /// - Throws: `StoreError`; see `FileStore`.
    public func url(of name: String) async throws -> URL {
        let path = folder
        return try await reading(name) { folder in
            guard try Self.facts(folder, name) != nil else { return nil }
            return URL(fileURLWithPath: path, isDirectory: true)
                .appendingPathComponent(name, isDirectory: false)
        }
    }

    /// Returns whether there is a file of that name.
    /// - Throws: `StoreError`; see `FileStore`.
    public func contains(_ name: String) async throws -> Bool {
        try FileName.check(name)
        return try await reader.run { folder in
            try folder.existing { try Self.facts($0, name) } != nil
        }
    }

    /// Removes a file.
    /// - Returns: False if there was none.
    /// - Throws: `StoreError`; see `FileStore`.
    @discardableResult
    public func remove(_ name: String) async throws -> Bool {
        try FileName.check(name)
        return try await writer.run { folder in
            try folder.existing { try $0.remove(name) } ?? false
        }
    }

    /// Returns the names of all files, sorted. Files of other programs are included if their names
    /// are allowed.
    /// - Throws: `StoreError`; see `FileStore`.
    /// - Complexity: O(*n* log *n*), *n* files.
    public func names() async throws -> [String] {
        try await reader.run { folder in
            let names = try folder.existing { folder in
                try folder.names().filter { name in
                    guard (try? FileName.check(name)) != nil else { return false }
                    return try folder.facts(of: name)?.form == .file
                }
            }
            return (names ?? []).sorted()
        }
    }

    private func reading<Result: Sendable>(
        _ name: String, _ body: @escaping @Sendable (borrowing Folder) throws -> Result?
    ) async throws -> Result {
        try FileName.check(name)
        return try await reader.run { folder in
            guard let result = try folder.existing(body) else {
                throw StoreError(.unknown, "There is no file of that name. Check the name.")
            }
            return result
        }
    }

    private static func facts(
        _ folder: borrowing Folder, _ name: String
    ) throws -> FileFacts? {
        guard let facts = try folder.facts(of: name) else { return nil }
        guard facts.form == .file else { throw notAFile }
        return facts
    }

    private static var notAFile: StoreError {
        StoreError(.file, "A file was expected, and something else stands there. Remove it.")
    }

    /// A flag that is up until a thread lowers it.
    private final class Flag: Sendable {
        private let state = Atomic(true)

        var isUp: Bool { state.load(ordering: .relaxed) }

        func lower() {
            state.store(false, ordering: .relaxed)
        }
    }
}
