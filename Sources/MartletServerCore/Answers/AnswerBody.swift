import CompressionKit
import MartletModel
import MartletProtocol

/// The change sets of an answer that is being gathered, with compressed parts as far as there are
/// any.
struct AnswerBody {
    private enum Part {
        case plain([UInt8])
        case piece(DeflatePiece)
    }

    private let acceptsGzip: Bool
    private let byteLimit: Int
    private var parts: [Part] = []
    private var count = 0
    /// The bytes of the change sets so far, uncompressed.
    var byteCount: Int { count }
    private var hasPieces = false
    private static let comma: [UInt8] = [UInt8(ascii: ",")]
    /// The size in bytes below which compression costs more than it saves.
    private static let leastGzip = 1_024

    /// Makes an empty body.
    ///
    /// - Parameter byteLimit: The bytes of change sets after which there is no more room.
    init(acceptsGzip: Bool, byteLimit: Int) {
        self.acceptsGzip = acceptsGzip
        self.byteLimit = byteLimit
    }

    /// Adds an encoded set; returns false if there is no room. The first set always has room.
    mutating func add(_ set: [UInt8]) -> Bool {
        guard makeRoom(set.count) else { return false }
        appendPlain(set)
        return true
    }

    /// Adds an encoded set whether or not there is room.
    mutating func addInAnyCase(_ set: [UInt8]) {
        if count > 0 {
            appendPlain(Self.comma)
            count += 1
        }
        count += set.count
        appendPlain(set)
    }

    /// Adds compressed sets; returns false if there is no room.
    mutating func add(_ sets: DeflatePiece) -> Bool {
        guard makeRoom(sets.uncompressedCount) else { return false }
        parts.append(.piece(sets))
        hasPieces = true
        return true
    }

    private mutating func makeRoom(_ bytes: Int) -> Bool {
        guard count == 0 || count + bytes < byteLimit else { return false }
        if count > 0 {
            appendPlain(Self.comma)
            count += 1
        }
        count += bytes
        return true
    }

    private mutating func appendPlain(_ bytes: [UInt8]) {
        if case .plain(var last)? = parts.last {
            parts.removeLast()
            last.append(contentsOf: bytes)
            parts.append(.plain(last))
        } else {
            parts.append(.plain(bytes))
        }
    }

    func finish(
        head: [UInt8], tail: [UInt8], revision: Revision, more: Bool
    ) -> PreparedAnswer {
        let plainCount = head.count + count + tail.count
        // If no part is compressed yet, the sender compresses the answer.
        guard hasPieces else {
            var body: [UInt8] = []
            body.reserveCapacity(plainCount)
            body.append(contentsOf: head)
            for case .plain(let bytes) in parts { body.append(contentsOf: bytes) }
            body.append(contentsOf: tail)
            return PreparedAnswer(
                body: body, isGzip: false,
                gainsByGzip: acceptsGzip && plainCount >= Self.leastGzip, plainCount: plainCount,
                revision: revision, more: more)
        }
        var joiner = GzipJoiner(reserving: plainCount / 4)
        var compressor: PieceCompressor?
        func join(_ plain: [UInt8]) {
            if plain.count < 256 {
                joiner.append(plain: plain)
            } else {
                let made = compressor ?? PieceCompressor()
                compressor = made
                joiner.append(made.piece(plain))
            }
        }
        // The head goes with the first plain part, and the tail with the last.
        var pending = head
        for part in parts {
            switch part {
            case .plain(let bytes): pending.append(contentsOf: bytes)
            case .piece(let piece):
                join(pending)
                pending = []
                joiner.append(piece)
            }
        }
        join(pending + tail)
        return PreparedAnswer(
            body: joiner.finished(), isGzip: true, gainsByGzip: false, plainCount: plainCount,
            revision: revision,
            more: more)
    }
}
