public import Foundation
internal import Synchronization
package import SystemKit

/// Files by name in one folder: pictures, documents, whatever is too large for a row. The database
/// keeps the names.
///
/// A file is replaced whole: whoever reads it, in this process or another, sees the old one or the
/// new one, and so does the next start after a kill or a power cut. What a killed process left
/// half-written is removed by the first write of the next one.
///
/// The folder is made when the first file is written, open to its owner alone, as are the files. A
/// name is 1 to 255 bytes of UTF-8, without “/” and control characters, and does not begin with
/// “.”. Whether upper and lower case, or two spellings of “é”, make two names, is up to the file
/// system; names made of hashes or ids avoid the question.
///
/// Reading never waits for writing, and neither holds a thread that tasks run on. Every call throws
/// `StoreError`: `.value` for a name that is not allowed, `.unknown` for a missing file, `.diskFull`,
/// `.inputOutput` where this user may not, `.readOnly`, and `.file` where a folder or a link stands
/// in place of the file. After an error the file is the old one or the new one, whole.
public final class FileStore: Sendable {
    /// The folder's path.
    public let folder: String
    private let reader: Confined<StateFolder>
    private let writer: Confined<StateFolder>

    /// The files of a folder. Nothing is read or made yet.
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

    /// Puts a file with this content under a name, in the place of what was there.
    public func write(_ data: Data, as name: String) async throws {
        try FileName.check(name)
        try await writer.run { folder in
            try folder.made { try $0.write([UInt8](data), as: name) }
        }
    }

    /// Puts a copy of a file under a name, in the place of what was there, a part at a time. Stops
    /// when the task is cancelled.
    /// - Parameters:
    ///   - url: A file's, anywhere on this device.
    ///   - name: The copy's.
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

    /// The content of a file.
    public func data(of name: String) async throws -> Data {
        try await reading(name) { folder in
            guard let file = try folder.file(name) else { return nil }
            return Data(try file.rest())
        }
    }

    /// The length of a file in bytes.
    public func size(of name: String) async throws -> Int64 {
        try await reading(name) { try Self.facts($0, name)?.size }
    }

    /// Where a file is, for those who open it themselves. To change it, write it anew: what is
    /// written in place can be seen half done.
    public func url(of name: String) async throws -> URL {
        let path = folder
        return try await reading(name) { folder in
            guard try Self.facts(folder, name) != nil else { return nil }
            return URL(fileURLWithPath: path, isDirectory: true)
                .appendingPathComponent(name, isDirectory: false)
        }
    }

    /// Whether there is a file of that name.
    public func contains(_ name: String) async throws -> Bool {
        try FileName.check(name)
        return try await reader.run { folder in
            try folder.existing { try Self.facts($0, name) } != nil
        }
    }

    /// Removes a file.
    /// - Returns: False where there was none.
    @discardableResult
    public func remove(_ name: String) async throws -> Bool {
        try FileName.check(name)
        return try await writer.run { folder in
            try folder.existing { try $0.remove(name) } ?? false
        }
    }

    /// The names of all files, sorted. What others have put there is listed too, where it is a file
    /// and its name is allowed.
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

    /// Up until it is lowered, from any thread.
    private final class Flag: Sendable {
        private let state = Atomic(true)

        var isUp: Bool { state.load(ordering: .relaxed) }

        func lower() {
            state.store(false, ordering: .relaxed)
        }
    }
}
