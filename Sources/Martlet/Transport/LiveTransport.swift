public import MartletDevice

/// A transport over which the server can tell of changes as they happen.
///
/// A contract beside `Transport`'s: what comes after the cursor comes in order and in whole
/// batches, and the connection may end at any time; the listener then asks anew from where it is.
/// Where the server no longer has the entries after the cursor it says so (a batch that `isBehind`),
/// and goes on with what comes then.
public protocol LiveTransport: Transport {
    /// Opens the stream of deltas and hands over what it brings, until the server ends it.
    ///
    /// - Parameters:
    ///   - cursor: Where to begin, and who listens.
    ///   - receive: Takes one thing at a time: the next is read when it has returned, so a listener
    ///     that takes its time holds the stream up, and what is kept for it is bounded.
    /// - Throws: `TransportFailure`: with a status where the server refused, without one where the
    ///   connection failed, was cut, went silent, brought more than could be taken in, or where the
    ///   task was cancelled. `isInBatch` says that part of a batch had come: where that happens
    ///   again and again, the listener fetches what the batch has otherwise.
    func deltas(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure)
}

/// What a stream of deltas brings.
public enum LiveEvent: Hashable, Sendable {
    /// The first byte is there, so nothing on the way holds the stream back. Comes once, first.
    case opened
    /// A sign of life that the server gave so long after it was asked. By these the device knows whether
    /// something on the way holds back what comes.
    case sign(milliseconds: Int64)
    /// A batch, as JSON.
    case batch([UInt8])
}
