internal import MartletDevice
internal import MartletModel
internal import MartletProtocol

/// What a device begins with where it has no data yet.
public enum Seeding: Hashable, Sendable {
    /// The server's snapshot. Where the server has none, or none this version can read, the device
    /// begins empty and fetches the change log.
    ///
    /// Where the server's snapshot has several parts, opening waits for the first alone. The others
    /// come while the client is started, and after `sync()`; see `MartletClient.seedingStatus()`.
    case server
    /// A snapshot that came with the app, made by `martlet snapshot`: its path. It is copied, and
    /// the next exchange brings what is newer.
    case file(String)
}

/// How far a first download has come.
public struct SeedingProgress: Hashable, Sendable {
    /// Bytes that have come, of those that travel.
    public var received: Int64
    /// All that travels.
    public var total: Int64
}

/// What of a first download is here: classes of records, in the order in which they come.
///
/// All that others changed since the download began is here in any case; what is missing of a class
/// did not change.
public struct SeedingStatus: Hashable, Sendable {
    /// A class of records, as the server's seeding plan names it.
    public struct Class: Hashable, Sendable {
        public let name: String
        /// The types it has records of. A type may have records in several classes.
        public let types: [String]
        /// How many records it has.
        public let records: Int64
        /// Whether all of them are here.
        public let isComplete: Bool
    }

    /// The classes of the download under way; none where everything is here.
    public let classes: [Class]
    /// How far the download has come, in bytes that travel; both 0 where everything is here.
    public let progress: SeedingProgress

    /// Whether everything is here: there was nothing to wait for, or it has all come.
    public var isComplete: Bool { classes.isEmpty }

    /// Whether all records of a class are here. No, where the download knows no such class and is
    /// not at its end.
    public func isComplete(class name: String) -> Bool {
        isComplete || classes.contains { $0.name == name && $0.isComplete }
    }

    /// Whether all records of an entity type are here.
    public func isComplete(type: String) -> Bool {
        classes.allSatisfy { $0.isComplete || !$0.types.contains(type) }
    }

    /// Everything is here.
    init() {
        classes = []
        progress = SeedingProgress(received: 0, total: 0)
    }

    /// - Parameter underWay: Bytes that have come, as the download under way last told.
    init(_ pending: PendingSnapshot, underWay: Int64) {
        let manifest = pending.manifest
        classes = manifest.parts.map { part in
            Class(
                name: part.name, types: part.types.map(\.name), records: part.records,
                isComplete: !pending.names.contains(part.name))
        }
        let before = manifest.bytes(before: pending.next?.name)
        progress = SeedingProgress(
            received: min(max(before, underWay), manifest.bytes()), total: manifest.bytes())
    }
}
