internal import MartletModel
public import MartletProtocol

/// Where a device gets snapshots from.
public protocol SnapshotSource: Sendable {
    /// What the newest snapshot consists of; nil where there is none.
    /// - Throws: `TransportFailure` when no whole answer came, or one that refuses.
    func manifest() async throws(TransportFailure) -> SnapshotManifest?

    /// Begins to fetch the gzip form of a part.
    /// - Parameters:
    ///   - part: What is to be fetched.
    ///   - offset: The first byte wanted.
    ///   - tag: The entity tag of the earlier bytes, so that bytes of two files are not mixed; nil
    ///     if they had none.
    /// - Returns: The bytes from there on, or from the beginning.
    /// - Throws: `TransportFailure`, with the problem `noSnapshotFile` where the file is gone.
    func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?
    ) async throws(TransportFailure) -> SnapshotBytes
}

/// A part's bytes as they come.
public struct SnapshotBytes: Sendable {
    /// Where in the file the first of them stands.
    public var offset: Int64
    /// The entity tag of the file's bytes, if the server gives one.
    public var tag: String?
    /// The next bytes; nil at the end.
    public var next: @Sendable () async throws(TransportFailure) -> [UInt8]?

    public init(
        offset: Int64, tag: String?,
        next: @escaping @Sendable () async throws(TransportFailure) -> [UInt8]?
    ) {
        self.offset = offset
        self.tag = tag
        self.next = next
    }
}
