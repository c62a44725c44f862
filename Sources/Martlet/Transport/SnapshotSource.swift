internal import MartletModel
package import MartletProtocol

/// A source of snapshots for a device.
package protocol SnapshotSource: Sendable {
    /// Returns the manifest of the newest snapshot; nil if there is none.
    /// - Parameter client: The device's name; nil if the snapshot is not for a device.
    /// - Throws: `TransportFailure` if no complete answer arrived, or the server refused.
    func manifest(client: String?) async throws(TransportFailure) -> SnapshotManifest?

    /// Begins to fetch the gzip encoding of a part.
    /// - Parameters:
    ///   - part: The part to fetch.
    ///   - offset: The first byte wanted.
    ///   - tag: The entity tag of the earlier bytes, so that bytes of two files are not mixed; nil
    ///     if they had none.
    ///   - client: The device's name; nil if the snapshot is not for a device.
    /// - Returns: The bytes from the offset, or from the beginning.
    /// - Throws: `TransportFailure`, with the problem `noSnapshotFile` if the file is gone.
    func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
    ) async throws(TransportFailure) -> SnapshotBytes
}

/// The bytes of a part, as they arrive.
package struct SnapshotBytes: Sendable {
    /// The position of the first byte in the file.
    package var offset: Int64
    /// The entity tag of the file's bytes; nil if the server gives none.
    package var tag: String?
    /// Returns the next bytes; nil at the end.
    package var next: @Sendable () async throws(TransportFailure) -> [UInt8]?

    /// Creates the bytes of a part from their source.
    package init(
        offset: Int64, tag: String?,
        next: @escaping @Sendable () async throws(TransportFailure) -> [UInt8]?
    ) {
        self.offset = offset
        self.tag = tag
        self.next = next
    }
}
