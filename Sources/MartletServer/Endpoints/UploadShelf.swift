internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization

/// Holds the bodies of requests that arrive in pieces on a bad line.
///
/// The shelf keeps bodies in memory, and bounds their total size. The user with the most bytes
/// makes room first, so that a user who sends much does not displace the pieces of others. If a
/// body is gone, the server tells its device, which sends it again.
final class UploadShelf: Sendable {
    /// The sender of a body, and the body's name.
    struct Key: Hashable {
        let token: String
        let name: String
        /// The user, if there is one: a user with several tokens has one share.
        var party: String?

        var owner: String { party ?? token }
    }

    /// An answer that is fetched in pieces.
    struct Answer: Sendable {
        let status: Int
        let isGzip: Bool
        let bytes: [UInt8]
        /// The view for which it was made.
        var view = AnsweredView()
    }

    private struct Upload {
        var bytes: [UInt8]
        var touched: Int
        /// The answer that was given, for a device that asks for its next piece.
        var answer: Answer?

        var byteCount: Int { bytes.count + (answer?.bytes.count ?? 0) }
    }

    private struct State {
        var uploads: [Key: Upload] = [:]
        var byteCount = 0
        var count = 0
    }

    private let state = Mutex(State())
    private let limit: Int

    /// Makes an empty shelf.
    ///
    /// - Parameter limit: The most bytes of all bodies and answers together. The default holds two
    ///   of the largest possible answers.
    init(limit: Int = 2 * Limits.inflatedBytes) {
        self.limit = limit
    }

    /// Adds a piece if it follows the bytes that have arrived.
    ///
    /// - Returns: The number of bytes that have arrived, and the whole body if that is `total`.
    /// - Complexity: O(*p*) in the bytes of the piece; O(*n*) in the number of bodies if room must
    ///   be made.
    func add(
        _ piece: [UInt8], at offset: Int, of total: Int, _ key: Key
    ) -> (received: Int, whole: [UInt8]?) {
        state.withLock { state in
            state.count += 1
            var upload = state.uploads.removeValue(forKey: key) ?? Upload(bytes: [], touched: 0)
            state.byteCount -= upload.byteCount
            upload.touched = state.count
            if offset == upload.bytes.count, offset + piece.count <= total {
                upload.bytes += piece
            }
            state.uploads[key] = upload
            state.byteCount += upload.byteCount
            makeRoom(&state)
            let received = state.uploads[key]?.bytes.count ?? 0
            return (received, received == total ? upload.bytes : nil)
        }
    }

    /// Removes bodies until the rest has room: each time the least recently used body of the user
    /// with the most.
    private func makeRoom(_ state: inout State) {
        while state.byteCount > limit || state.uploads.count > Self.mostUploads {
            let counts = state.byteCount > limit
            var shares: [String: Int] = [:]
            for (key, upload) in state.uploads {
                shares[key.owner, default: 0] += counts ? upload.byteCount : 1
            }
            guard let most = shares.max(by: { $0.value < $1.value })?.key,
                let oldest = state.uploads.filter({ $0.key.owner == most })
                    .min(by: { $0.value.touched < $1.value.touched })
            else { return }
            state.byteCount -= oldest.value.byteCount
            state.uploads[oldest.key] = nil
        }
    }

    /// Returns the answer to a body, if the server has given and still keeps it.
    func answer(_ key: Key) -> Answer? {
        state.withLock { $0.uploads[key]?.answer }
    }

    /// Notes that the answer to a body may still be sent as of a later revision of its view.
    func renew(_ view: AnsweredView, _ key: Key) {
        state.withLock { state in
            guard state.uploads[key] != nil else { return }
            state.uploads[key]?.answer?.view = view
        }
    }

    /// Removes a body and its answer. The device is told to send the body again.
    func remove(_ key: Key) {
        state.withLock { state in
            guard let upload = state.uploads.removeValue(forKey: key) else { return }
            state.byteCount -= upload.byteCount
        }
    }

    /// Keeps the answer to a body for as long as the body is kept.
    func keep(_ answer: Answer, _ key: Key) {
        state.withLock { state in
            guard var upload = state.uploads[key] else { return }
            state.byteCount -= upload.byteCount
            upload.answer = answer
            state.uploads[key] = upload
            state.byteCount += upload.byteCount
            makeRoom(&state)
        }
    }

    private static let mostUploads = 1_000
}
