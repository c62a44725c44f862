package import ConnectionKit
internal import MartletModel
package import RedisKit

/// Hearing of new revisions from other server processes.
package enum RevisionNotices {
    /// What a listener hears.
    package enum Event: Sendable {
        /// From now on notices are heard; some may have been missed before.
        case listening
        case notice(RevisionNotice)
        /// Redis does not answer; another try follows by itself.
        case lost(any Error)
    }

    /// Listens on a connection of its own, made again whenever it is lost.
    /// - Parameter identities: The identities of the data sets.
    /// - Returns: Events without end; letting go of them ends the connection. They end only where
    ///   trying again is in vain, as with a wrong password: after `lost`.
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
