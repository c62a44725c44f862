internal import Dispatch
internal import HTTPKit
internal import SystemKit

/// Sends a part of a file in pieces, as fast as the client takes them.
enum FileStream {
    /// The number of bytes that are read at once, and held for a client that reads slowly.
    private static let pieceBytes: Int64 = 128 << 10

    /// Writes the bytes of a range. The file may be removed meanwhile.
    ///
    /// - Throws: `SystemError` if the file cannot be read; `HTTPStreamClosed` if it is too short,
    ///   or the client is gone. The answer then breaks off.
    static func write(
        _ range: Range<Int64>, of file: FileToSend, to writer: HTTPBodyWriter,
        sent: @Sendable (Int) -> Void
    ) async throws {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let piece = try await file.bytes(
                at: offset, count: Int(min(pieceBytes, range.upperBound - offset)))
            // The file was altered if it is shorter than its manifest says.
            guard !piece.isEmpty else { throw HTTPStreamClosed() }
            try await writer.write(piece)
            sent(piece.count)
            offset += Int64(piece.count)
        }
    }
}

/// An open file. Its blocking reads run on a queue that all files share.
final class FileToSend: Sendable {
    private static let queue = CallQueue(label: "martlet.files", attributes: .concurrent)

    private let file: OpenFile
    /// The file's length in bytes.
    let count: Int64

    /// Opens a file; returns nil if there is none.
    static func open(_ path: String) async throws -> FileToSend? {
        try await queue.run {
            do throws(SystemError) {
                return try FileToSend(path)
            } catch  where error.isMissing {
                return nil
            }
        }
    }

    private init(_ path: String) throws(SystemError) {
        file = try OpenFile(readingFrom: path)
        count = try file.facts().size
    }

    func bytes(at offset: Int64, count: Int) async throws -> [UInt8] {
        try await Self.queue.run { try self.file.bytes(at: offset, count: count) }
    }
}
