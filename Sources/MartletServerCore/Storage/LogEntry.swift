package import MartletModel
internal import MartletProtocol

/// An accepted change set as the log keeps it.
package struct LogEntry: Hashable, Sendable {
    package let revision: Revision
    /// The device that sent it; 0 if it named none, or if the server itself made the entry.
    package let device: Int64
    package let identifier: String?
    package let sequence: Int64?
    /// The temporary ids of the created records, in the order of `create` over all types, with
    /// commas between them. A record without one has an empty field. Nil if no record has one.
    package let temporaries: String?
    /// The encoded set as every device but its author receives it; empty once compaction has
    /// removed it.
    package let body: [UInt8]
    /// The chained hash after this entry.
    package let hash: LineageHash
    /// The time when it was accepted, in milliseconds since 1970.
    package let time: Int64

    package init(
        revision: Revision, device: Int64, identifier: String?, sequence: Int64?,
        temporaries: String?, body: [UInt8], hash: LineageHash, time: Int64
    ) {
        self.revision = revision
        self.device = device
        self.identifier = identifier
        self.sequence = sequence
        self.temporaries = temporaries
        self.body = body
        self.hash = hash
        self.time = time
    }

    /// The approximate bytes of memory that the entry takes.
    var footprint: Int { body.count + (temporaries?.utf8.count ?? 0) + 160 }
}
