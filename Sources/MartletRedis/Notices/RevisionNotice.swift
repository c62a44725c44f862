package import MartletModel
internal import MartletProtocol
package import RedisKit

/// A notice from one server process to the others that a data set has reached a revision.
///
/// A notice is only a hint. A process that receives one asks the storage.
package struct RevisionNotice: Hashable, Sendable {
    /// The data set's identity.
    package let dataSet: String
    package let revision: Revision

    package init(dataSet: String, revision: Revision) {
        self.dataSet = dataSet
        self.revision = revision
    }

    private static let prefix = "martlet:revisions:"

    /// Returns the channel on which the notices of a data set are published.
    package static func channel(of dataSet: String) -> String { prefix + dataSet }

    /// Reads a message; nil if it is no notice.
    package init?(_ message: RedisMessage) {
        guard message.channel.hasPrefix(Self.prefix), message.payload.count <= 19,
            let text = String(validating: message.payload, as: UTF8.self),
            let revision = Revision(text), revision > 0
        else { return nil }
        self.init(
            dataSet: String(message.channel.dropFirst(Self.prefix.count)), revision: revision)
    }

    /// The command that publishes the notice.
    package var command: RedisCommand {
        RedisCommand("PUBLISH", Self.channel(of: dataSet), "\(revision)")
    }
}
