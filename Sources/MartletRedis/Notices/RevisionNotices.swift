package import ConnectionKit
internal import MartletModel
package import RedisKit

/// A subscription to the new revisions of other server processes.
package enum RevisionNotices {
    /// An event that a listener receives.
    package enum Event: Sendable {
        /// Notices arrive from now on; some may have been missed before.
        case listening
        case notice(RevisionNotice)
        /// Redis does not answer. Another attempt follows automatically.
        case lost(any Error)
    }

    /// Listens on a separate connection, and reconnects whenever it is lost.
    /// - Parameter identities: The identities of the data sets.
    /// - Returns: Events without end. Releasing the sequence closes the connection. It ends only if
    ///   another attempt is useless, as with a wrong password; the last event is then `lost`.
    package static func events(
        _ address: RedisAddress, of identities: [String], options: RedisOptions = RedisOptions(),
        pace: Pace = .system
    ) -> AsyncCompactMapSequence<AsyncStream<ListeningEvent<RedisMessage>>, Event> {
        RedisConnection.messages(
            address, channels: identities.map(RevisionNotice.channel(of:)), options: options,
            pace: pace
        ).compactMap { event in
            switch event {
            case .listening: .listening
            case .message(let message): RevisionNotice(message).map(Event.notice)
            case .lost(let error): .lost(error)
            }
        }
    }
}
