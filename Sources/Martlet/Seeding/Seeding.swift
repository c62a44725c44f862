/// What a device begins with where it has no file yet.
public enum Seeding: Hashable, Sendable {
    /// The server's snapshot. Where the server has none, or none this version can read, the device
    /// begins empty and fetches the change log.
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
