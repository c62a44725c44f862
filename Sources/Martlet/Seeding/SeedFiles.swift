internal import CompressionKit
internal import Foundation
internal import MartletModel
internal import MartletProtocol
internal import SystemKit

/// The files of a download, next to the device's file.
///
/// All their names begin with that file's name, which shows where they belong. Calls block.
struct SeedFiles: Sendable {
    /// The folder of the device's file.
    let folder: String
    /// The name of the device's file.
    let name: String
    /// Makes operations fail on purpose, in tests.
    let faults: FileFaults?

    /// - Parameter path: The device's file.
    init(path: String, faults: FileFaults? = nil) {
        let url = URL(fileURLWithPath: path)
        folder = url.deletingLastPathComponent().path
        name = url.lastPathComponent
        self.faults = faults
    }

    /// The name of the file with the server's manifest of the download. It is kept, so that a newer
    /// snapshot on the server does not restart the download.
    var manifest: String { "\(name)-seed.json" }
    /// The name of the file with the name of a device that has no file yet, under which the server
    /// knows it by the download.
    var client: String { "\(name)-seed.client" }
    /// The name of the file that becomes the device's.
    var staged: String { "\(name)-seed.device" }
    /// The name of the file with the received bytes of a part.
    func packed(_ part: String) -> String { "\(name)-seed.\(part).gz" }
    /// The name of the file with the entity tag of those bytes.
    func tag(_ part: String) -> String { "\(name)-seed.\(part).tag" }
    /// The name of the file with a part's inflated bytes. Each process has its own, so that no
    /// other process on the same device's file writes to the bytes that this one has checked and is
    /// reading. The compressed file has a checksum.
    func plain(_ part: String) -> String {
        "\(name)-seed.\(part).\(ProcessInfo.processInfo.processIdentifier).sqlite"
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }
    /// Returns the name of a file whose path `path` returned.
    func nameInFolder(_ path: String) -> String { String(path.dropFirst(folder.count + 1)) }

    func open() throws(SystemError) -> Folder { try Folder(path: folder, faults: faults) }

    /// Returns the manifest of the download that was begun; nil if there is none, or it cannot be
    /// read.
    func begun() throws(SystemError) -> SnapshotManifest? {
        guard let bytes = try open().file(manifest)?.rest() else { return nil }
        return try? SyncCoder.decodeSnapshotManifest(bytes)
    }

    /// Returns the name under which the device began the download; nil if none was kept.
    func begunClient() throws(SystemError) -> String? {
        guard let bytes = try open().file(client)?.rest(), !bytes.isEmpty else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// - Parameter client: The name of a device that has no file yet; nil if it has one.
    func begin(_ manifest: SnapshotManifest, client: String?) throws(SystemError) {
        if let client { try open().write([UInt8](client.utf8), as: self.client) }
        try open().write(SyncCoder.encode(manifest), as: self.manifest)
    }

    /// Removes the files of one part's download.
    func remove(_ part: String) throws(SystemError) {
        let folder = try open()
        for name in [packed(part), plain(part), tag(part)] { try folder.remove(name) }
    }

    /// Removes all files of the download; the device's file stays.
    func removeAll() throws(SystemError) {
        let folder = try open()
        // The manifest is removed last: while it exists, the remaining files will be found.
        for other in try folder.names()
        where other.hasPrefix("\(name)-seed.") && other != manifest {
            try folder.remove(other)
        }
        try folder.remove(manifest)
    }
}

/// One part of a snapshot that is being received. It is confined to its holder; calls block.
final class IncomingPart {
    let part: SnapshotManifest.Part
    private let coding: SnapshotManifest.Coding
    private let files: SeedFiles
    private var file: OpenFile
    private var checksum = CRC32()
    /// The number of bytes received.
    private(set) var received: Int64 = 0
    /// The entity tag of those bytes; nil if they have none.
    private(set) var tag: String?
    /// Whether an earlier attempt received some of the bytes.
    private(set) var isResumed = false
    /// The number of bytes that are about to arrive a second time, and the checksum of those that
    /// have.
    private var repeated: Int64 = 0
    private var repeatedSum = CRC32()

    /// Continues with the stored bytes of a part, if there are any.
    /// - Throws: `SnapshotFault` if the server has no readable encoding of the part.
    init(_ part: SnapshotManifest.Part, files: SeedFiles) throws {
        guard let coding = part[coding: "gzip"] else {
            throw SnapshotFault("the server has no gzip form of it")
        }
        self.part = part
        self.coding = coding
        self.files = files
        let folder = try files.open()
        let name = files.packed(part.name)
        // The tag is written before the first byte. If the hash differs, the bytes belong to
        // another file.
        let noted = try folder.file(files.tag(part.name))?.rest()
        let lines = noted.map { String(decoding: $0, as: UTF8.self).split(separator: "\n") } ?? []
        guard lines.first == Substring(part.hash), let old = try folder.file(name) else {
            file = try folder.appending(to: name, keeping: 0)
            return
        }
        tag = lines.count == 2 ? String(lines[1]) : nil
        while true {
            let piece = try old.next(atMost: 256 << 10)
            if piece.isEmpty { break }
            checksum.update(piece)
            received += Int64(piece.count)
        }
        isResumed = received > 0
        file = try folder.appending(to: name)
        if received > coding.sum.bytes { try restart(tag: nil) }
    }

    var total: Int64 { coding.sum.bytes }
    var isComplete: Bool { received == total }

    /// Prepares for bytes from an offset. If they start at the beginning although some are stored,
    /// the stored ones are skipped and compared.
    func begin(at offset: Int64, tag: String?) throws {
        repeated = 0
        let isOther = tag != nil && self.tag != nil && tag != self.tag
        guard received > 0, !isOther else {
            guard offset == 0 else { throw SnapshotFault("another range came than was asked for") }
            return try restart(tag: tag)
        }
        guard offset == 0 || offset == received else {
            throw SnapshotFault("another range came than was asked for")
        }
        if offset == 0 {
            repeated = received
            repeatedSum = CRC32()
        }
        if self.tag == nil, tag != nil { try note(tag) }
    }

    /// Deletes the stored bytes, and begins again.
    func restart(tag: String?) throws {
        let folder = try files.open()
        file = try folder.appending(to: files.packed(part.name), keeping: 0)
        checksum = CRC32()
        received = 0
        isResumed = false
        repeated = 0
        try note(tag)
    }

    /// Stores the tag of the bytes before the first of them arrives.
    private func note(_ tag: String?) throws {
        let tag = tag.flatMap { $0.contains("\n") ? nil : $0 }
        self.tag = tag
        try files.open().write(
            [UInt8]("\(part.hash)\n\(tag ?? "")".utf8), as: files.tag(part.name))
    }

    /// Appends the next bytes, without those that are stored already.
    func append(_ bytes: [UInt8]) throws {
        let known = Int(min(repeated, Int64(bytes.count)))
        if known > 0 {
            repeatedSum.update(Array(bytes[..<known]))
            repeated -= Int64(known)
            guard repeated > 0 || repeatedSum.value == checksum.value else {
                throw SnapshotFault("it came again with other bytes")
            }
        }
        let bytes = known > 0 ? Array(bytes[known...]) : bytes
        guard received + Int64(bytes.count) <= total else {
            throw SnapshotFault("more bytes came than were announced")
        }
        try file.append(bytes)
        checksum.update(bytes)
        received += Int64(bytes.count)
    }

    /// Checks the received bytes and inflates them.
    /// - Returns: The path of the file.
    /// - Throws: `SnapshotFault` if the bytes are not those that were announced.
    func inflate() throws -> String {
        guard isComplete, checksum.value == coding.sum.crc32 else {
            throw SnapshotFault("its bytes are not those that were announced")
        }
        let folder = try files.open()
        let name = files.plain(part.name)
        guard let packed = try folder.file(files.packed(part.name)) else {
            throw SnapshotFault("it is gone")
        }
        let plain = try folder.appending(to: name, keeping: 0)
        var sum = CRC32()
        var count: Int64 = 0
        let reader = GzipReader()
        do {
            while true {
                let piece = try packed.next(atMost: 32 << 10)
                if piece.isEmpty { break }
                let bytes = try reader.inflate(piece)
                count += Int64(bytes.count)
                // The check precedes the write, because a small compressed file must not fill the
                // disk.
                guard count <= part.plain.bytes else {
                    throw SnapshotFault("it is longer than was announced")
                }
                sum.update(bytes)
                try plain.append(bytes)
            }
            try reader.finish()
        } catch let error as CompressionError {
            throw SnapshotFault(error.message)
        }
        guard count == part.plain.bytes, sum.value == part.plain.crc32 else {
            throw SnapshotFault("it inflates to something else than was announced")
        }
        try plain.synchronize()
        return files.path(name)
    }
}
