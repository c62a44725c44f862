internal import Synchronization

/// Estimates how many bytes the network carries in one piece.
final class PieceSize: Sendable {
    /// The bytes of the first piece.
    static let first = 32 << 10
    /// The bytes of the smallest piece, and the size from which bodies are sent whole.
    private static let (least, most) = (8 << 10, 1 << 20)

    /// The bytes of a piece after a proxy first refused a body because of its size; most proxies
    /// take more.
    private static let firstTaken = 512 << 10

    private struct State {
        var size: Int?
        /// The bytes of a piece that a proxy takes; nil if no proxy refused one.
        var taken: Int?
        var areKnown = true
    }

    private let state = Mutex(State())

    /// Whether pieces are already as small as possible.
    var isLeast: Bool { state.withLock { ($0.size ?? .max) <= Self.least } }

    /// The bytes of a piece; nil if the body is sent whole.
    var size: Int? { state.withLock { $0.areKnown ? $0.size : nil } }

    /// Notes that a request or a piece was not answered.
    func failed() {
        state.withLock { $0.size = max(Self.least, $0.size.map { $0 / 2 } ?? Self.first) }
    }

    /// Notes that a piece was answered. The next one may be slightly larger.
    func worked() {
        state.withLock { state in
            guard let size = state.size else { return }
            let larger = size < Self.most ? size + size / 8 : nil
            guard let taken = state.taken else { return state.size = larger }
            // The proxy that refused may be gone, so a slightly larger piece is tried from time to
            // time.
            state.taken = taken < Self.most ? taken + taken / 32 : nil
            state.size = state.taken.map { min($0, larger ?? $0) }
        }
    }

    /// Notes that a proxy refused a body of this size.
    /// - Returns: Whether a smaller piece can be tried.
    func refused(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard state.areKnown, bytes > Self.least else { return false }
            let taken = max(Self.least, min(state.taken ?? Self.firstTaken, bytes / 2))
            state.taken = taken
            state.size = min(state.size ?? taken, taken)
            return true
        }
    }

    /// Makes the next body go whole.
    func goWhole() {
        state.withLock { ($0.size, $0.taken) = (nil, nil) }
    }

    /// Notes that the server does not support pieces.
    func areUnknown() {
        state.withLock { $0.areKnown = false }
    }
}
