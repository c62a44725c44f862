internal import CompressionKit
internal import DeflateKit
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import OpenSSLKit
internal import SQLiteRecords
internal import SystemKit
internal import ZstdKit

/// The snapshots of one data set on disk, those of everything or those of views: compressed files under
/// the hash of their content, and a manifest for each generation and view.
///
/// The calls block. A file is complete and on the disk before a manifest names it. A file that no
/// manifest names is therefore left from a killed process, or from a generation that is no longer
/// needed.
struct SnapshotFolder {
    /// The number of generations that are kept: the newest, and the one before, which a device may
    /// be downloading.
    static let generations = 2

    let path: String

    init(path: String) throws {
        self.path = path
        try Folder.make(path: path)
    }

    /// Returns the stored manifests, the newest first. A manifest that cannot be read, or that
    /// lacks files, does not count.
    func manifests() throws -> [SnapshotManifest] {
        let folder = try Folder(path: path)
        let names = Set(try folder.names())
        var found: [SnapshotManifest] = []
        for name in names where Self.isManifest(name) {
            guard let bytes = try folder.file(name)?.rest(),
                let manifest = try? SyncCoder.decodeSnapshotManifest(bytes),
                Self.files(of: manifest).allSatisfy(names.contains)
            else { continue }
            found.append(manifest)
        }
        return found.sorted { $0.revision > $1.revision }
    }

    /// Removes everything except some manifests and their files.
    ///
    /// - Parameters:
    ///   - manifests: The manifests, the newest first.
    ///   - most: The number of manifests that are kept.
    /// - Returns: The manifests that are kept.
    @discardableResult
    func keep(
        _ manifests: [SnapshotManifest], most: Int = generations
    ) throws -> [SnapshotManifest] {
        let kept = Array(manifests.prefix(most))
        var needed: Set<String> = []
        for manifest in kept {
            needed.insert(Self.name(of: manifest))
            needed.formUnion(Self.files(of: manifest))
        }
        let folder = try Folder(path: path)
        try folder.removeAbandonedFiles()
        // A file that is being sent exists until its last reader has closed it.
        for name in try folder.names() where !needed.contains(name) { try folder.remove(name) }
        return kept
    }

    /// Returns the path of a part's file while it is made.
    func making(_ part: String) -> String { "\(path)/\(part).making" }

    /// Compresses the files of a cut, and writes them and a manifest to the disk.
    ///
    /// - Parameter isWanted: Called repeatedly. When it returns false, this ends with an error.
    /// - Throws: `OwnerStopped` if it is no longer wanted; errors of the file system.
    func publish(
        _ cut: SnapshotMaker.Cut, while isWanted: () -> Bool
    ) throws -> SnapshotManifest {
        let folder = try Folder(path: path)
        var manifest = SnapshotManifest(
            format: SnapshotFormat.number, dataSet: cut.dataSet, revision: cut.revision,
            lineage: cut.lineage, schema: cut.schema, parts: [])
        manifest.view = cut.view
        for part in cut.parts {
            manifest.parts.append(try publish(part, in: folder, while: isWanted))
            try folder.remove("\(part.name).making")
        }
        try folder.write(SyncCoder.encode(manifest), as: Self.name(of: manifest))
        return manifest
    }

    private func publish(
        _ part: SnapshotMaker.Part, in folder: borrowing Folder, while isWanted: () -> Bool
    ) throws -> SnapshotManifest.Part {
        let source = try OpenFile(readingFrom: part.path)
        let zstd = try Packing(.zstd, of: part.name, in: folder)
        let gzip = try Packing(.gzip, of: part.name, in: folder)
        var hash = SHA256()
        var plain = SnapshotManifest.Sum(bytes: 0, crc32: 0)
        var checksum = CRC32()
        while true {
            guard isWanted() else { throw OwnerStopped() }
            let piece = try source.next(atMost: 1 << 20)
            try zstd.write(piece)
            try gzip.write(piece)
            if piece.isEmpty { break }
            hash.update(piece)
            checksum.update(piece)
            plain.bytes += Int64(piece.count)
        }
        plain.crc32 = checksum.value
        let name = Hexadecimal.text(hash.finish())
        for packing in [zstd, gzip] {
            try folder.rename(packing.name, to: Self.file(name, packing.coding))
        }
        return SnapshotManifest.Part(
            name: part.name, hash: name, plain: plain,
            types: part.records.map { .init(name: $0.type, records: $0.count) },
            codings: [zstd, gzip].map { .init(name: $0.coding.rawValue, sum: $0.sum) })
    }

    /// Returns whether a folder has all files of a manifest in their full length. It reads none of
    /// them.
    static func holds(_ manifest: SnapshotManifest, in path: String) -> Bool {
        manifest.parts.allSatisfy { part in
            SnapshotCoding.allCases.allSatisfy { coding in
                FileStamp(path: path + "/" + file(part.hash, coding))?.size
                    == part[coding: coding.rawValue]?.sum.bytes
            }
        }
    }

    // MARK: - Names

    static func file(_ hash: String, _ coding: SnapshotCoding) -> String {
        "\(hash).sqlite.\(coding.ending)"
    }

    private static func files(of manifest: SnapshotManifest) -> [String] {
        manifest.parts.flatMap { part in
            SnapshotCoding.allCases.map { file(part.hash, $0) }
        }
    }

    private static func name(of manifest: SnapshotManifest) -> String {
        "manifest-\(manifest.revision)\(manifest.view.map { "-v\($0)" } ?? "").json"
    }

    private static func isManifest(_ name: String) -> Bool {
        name.hasPrefix("manifest-") && name.hasSuffix(".json")
    }
}

/// A coding in which a snapshot's files are kept.
enum SnapshotCoding: String, Sendable, CaseIterable {
    case gzip
    case zstd

    /// The end of its files' names.
    var ending: String { self == .gzip ? "gz" : "zst" }
    /// Its media type (RFC 6713, RFC 8878).
    var mediaType: String { self == .gzip ? "application/gzip" : "application/zstd" }
}

/// A compressed file that is being written.
private final class Packing {
    let coding: SnapshotCoding
    let name: String
    private(set) var sum = SnapshotManifest.Sum(bytes: 0, crc32: 0)
    private let file: OpenFile
    private let compress: ([UInt8], Bool) -> [UInt8]

    init(_ coding: SnapshotCoding, of part: String, in folder: borrowing Folder) throws {
        self.coding = coding
        name = "\(part).\(coding.ending).making"
        file = try folder.appending(to: name, keeping: 0)
        switch coding {
        case .gzip:
            // A gzip file may have several members (RFC 1952).
            compress = { plain, _ in plain.isEmpty ? [] : OneShotGzip.compress(plain, level: 6) }
        case .zstd:
            let writer = ZstdWriter(level: 1)
            compress = { writer.write($0, isLast: $1) }
        }
    }

    /// Adds bytes to the file. An empty array ends it, and brings all bytes to the disk.
    func write(_ plain: [UInt8]) throws {
        let packed = compress(plain, plain.isEmpty)
        var checksum = CRC32(sum.crc32)
        checksum.update(packed)
        sum = .init(bytes: sum.bytes + Int64(packed.count), crc32: checksum.value)
        if !packed.isEmpty { try file.append(packed) }
        if plain.isEmpty { try file.synchronize() }
    }
}
