import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import Synchronization

/// A device's transport to the server, which loses requests, answers to processed requests, and
/// live connections.
struct LossyTransport: LiveTransport, SnapshotSource {
    let base: any LiveTransport & SnapshotSource
    let faults: NetworkFaults
    let meter: LiveMeter
    /// The device's number.
    let device: Int

    /// Whether a live connection was cut, after which nothing more arrives.
    private final class State: Sendable {
        let isCut = Mutex(false)
    }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        try await exchange(body, progress: {})
    }

    func exchange(
        _ body: [UInt8], progress: @escaping @Sendable () -> Void
    ) async throws(TransportFailure) -> TransportAnswer {
        let fate = faults.next()
        guard fate != .requestLost else {
            throw TransportFailure(message: "The demo's network lost the request.")
        }
        do throws(TransportFailure) {
            let sent = ContinuousClock.now
            let answer = try await base.exchange(body, progress: progress)
            meter.answered(answer.body, sent: sent, author: device)
            guard fate != .answerLost else {
                throw TransportFailure(message: "The demo's network lost the answer.")
            }
            return answer
        } catch {
            if fate == .carried { faults.countFailure() }
            throw error
        }
    }

    /// Passes the base's stream on, until the network cuts it: before it begins, or in place of a
    /// batch.
    func deltas(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure) {
        guard faults.next() != .requestLost else {
            throw TransportFailure(message: "The demo's network lost the request.")
        }
        let (cuts, cut) = AsyncStream.makeStream(of: Void.self)
        let state = State()
        let result = await withTaskGroup(of: Result<Void, TransportFailure>.self) { group in
            group.addTask {
                do throws(TransportFailure) {
                    try await base.deltas(cursor) { event in
                        if state.isCut.withLock(\.self) { return }
                        if case .batch = event, faults.cutsStream() {
                            state.isCut.withLock { $0 = true }
                            cut.yield()
                        } else {
                            await receive(event)
                        }
                    }
                    return .success(())
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                for await _ in cuts { break }
                let message = "The demo's network cut the live connection."
                return .failure(TransportFailure(message: message))
            }
            let first = await group.next()
            group.cancelAll()
            return first ?? .success(())
        }
        try result.get()
    }

    func manifest(
        client: String? = nil
    ) async throws(TransportFailure) -> SnapshotManifest? {
        guard faults.next() == .carried else {
            throw TransportFailure(message: "The demo's network lost the list of the snapshot.")
        }
        return try await base.manifest(client: client)
    }

    /// Passes the base's bytes on, until the network cuts them.
    func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
    ) async throws(TransportFailure) -> SnapshotBytes {
        let bytes = try await base.open(part, from: offset, tag: tag, client: client)
        return SnapshotBytes(offset: bytes.offset, tag: bytes.tag) {
            () async throws(TransportFailure) in
            guard !faults.cutsStream() else {
                throw TransportFailure(message: "The demo's network cut the download.")
            }
            return try await bytes.next()
        }
    }
}
