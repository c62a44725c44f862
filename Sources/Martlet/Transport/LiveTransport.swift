package import MartletDevice

/// A transport over which the server can report changes as they happen.
///
/// Its contract, in addition to that of `Transport`: the batches after the cursor arrive in order
/// and complete. The connection may end at any time; the listener then asks again from its new
/// position. If the server no longer has the entries after the cursor, it says so (a batch that
/// `isBehind`), and continues with later changes.
package protocol LiveTransport: Transport {
    /// Opens the stream of deltas and hands over its events, until the server ends it.
    ///
    /// - Parameters:
    ///   - cursor: The position to begin at, and the listening device.
    ///   - receive: Takes one event at a time. The next one is read when it has returned, so a slow
    ///     listener delays the stream, and the buffered bytes are bounded.
    /// - Throws: `TransportFailure`: with a status if the server refused; without one if the
    ///   connection failed, was cut or went silent, if an event was too large, or if the task was
    ///   cancelled. `isInBatch` says that part of a batch had arrived. If this happens repeatedly,
    ///   the listener fetches the batch's contents in another way.
    func deltas(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure)
}

/// An event of a stream of deltas.
package enum LiveEvent: Hashable, Sendable {
    /// The first byte has arrived, so nothing on the network holds the stream back. This event
    /// comes once, as the first.
    case opened
    /// A sign of life, with the time between the request and the server's sending it. From these
    /// the device knows whether something on the network delays the stream.
    case sign(milliseconds: Int64)
    /// A batch, as JSON.
    case batch([UInt8])
}
