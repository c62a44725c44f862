package import MartletModel
internal import MartletProtocol

/// One accepted change set as the log keeps it.
package struct LogEntry: Hashable, Sendable {
    package let revision: Revision
    /// The device that sent it; 0 where it named none, or where the server itself made the entry.
    package let device: Int64
    package let identifier: String?
    package let sequence: Int64?
    /// The temporary ids of the created records, in the order of `create` over all types, parted
    /// by commas; empty between two commas where a record had none. Nil where none had one.
    package let temporaries: String?
    /// The set as everyone but its author receives it, encoded; empty once compaction has taken
    /// it.
    package let body: [UInt8]
    /// The chained hash after this entry.
    package let hash: LineageHash
    /// When it was accepted, in milliseconds since 1970.
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

    /// Bytes this entry takes in memory, about.
    var footprint: Int { body.count + (temporaries?.utf8.count ?? 0) + 160 }
}
