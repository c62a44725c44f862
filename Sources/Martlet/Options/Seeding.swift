internal import MartletDevice
internal import MartletModel
internal import MartletProtocol

/// The data that a device begins with if it has none yet.
///
/// ```swift
/// options.seeding = .server
/// options.seedingProgress = { show($0.received, of: $0.total) }
/// ```
public enum Seeding: Hashable, Sendable {
    /// The server's snapshot. If the server has none, or none that this version can read, the
    /// device begins empty and fetches the change log.
    ///
    /// If the snapshot has several parts, opening waits only for the first. The client downloads
    /// the others while it is started, and after `sync()`; see `MartletClient.seedingStatus()`.
    case server
    /// A snapshot that came with the app, by its path; `martlet snapshot` makes one. The device
    /// copies it, and fetches newer changes with its next exchange.
    case file(String)
}

/// The progress of a first download.
public struct SeedingProgress: Hashable, Sendable {
    /// The compressed bytes received so far.
    public var received: Int64
    /// The compressed bytes of the whole download.
    public var total: Int64
}

/// The state of a first download: its classes of records, in the order in which they arrive.
///
/// The device has all records that changed since the download began, whatever their class. The
/// missing records of a class have not changed since then.
public struct SeedingStatus: Hashable, Sendable {
    /// A class of records, as the server's seeding plan names it.
    public struct Class: Hashable, Sendable {
        /// The name of the class.
        public let name: String
        /// The types of its records. A type may have records in several classes.
        public let types: [String]
        /// The number of its records.
        public let records: Int64
        /// Whether the device has all of them.
        public let isComplete: Bool
    }

    /// The classes of the current download; empty if no part of a snapshot is missing.
    public let classes: [Class]
    /// The progress of the download, in compressed bytes; both numbers are 0 if the device has
    /// everything.
    public let progress: SeedingProgress

    /// Whether no part of a snapshot is missing. It is also true before the first exchange, and on a
    /// device that began without a snapshot.
    public var isComplete: Bool { classes.isEmpty }

    /// Returns whether the device has all records of a class. Returns false for an unknown class
    /// while the download is still running.
    public func isComplete(class name: String) -> Bool {
        isComplete || classes.contains { $0.name == name && $0.isComplete }
    }

    /// Returns whether the device has all records of an entity type.
    public func isComplete(type: String) -> Bool {
        classes.allSatisfy { $0.isComplete || !$0.types.contains(type) }
    }

    /// Creates the status of a device that has everything.
    init() {
        classes = []
        progress = SeedingProgress(received: 0, total: 0)
    }

    /// Creates the status of a download that has not ended.
    /// - Parameter underWay: The bytes received so far, as the running download last reported them.
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
