internal import OpenSSLKit

/// The chained hash of a log: SHA-256 over the hash before and the entry, cut to 128 bits.
///
/// Two logs with the same hash at a revision are the same up to there. It tells a restored or
/// newly made data set from the one a device knows; it is no proof against an attacker who writes
/// the log.
public struct LineageHash: Hashable, Sendable {
    /// 16 bytes.
    public let bytes: [UInt8]

    static let byteCount = 16

    init(stored bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The hash before the first entry.
    init(origin identity: String) {
        bytes = Array(SHA256.digest(Array(identity.utf8)).prefix(Self.byteCount))
    }

    /// The hash after one more entry.
    func appending(_ body: [UInt8], identifier: String?) -> LineageHash {
        var hash = SHA256()
        hash.update(bytes)
        hash.update(Array((identifier ?? "").utf8))
        hash.update([0])
        hash.update(body)
        return LineageHash(stored: Array(hash.finish().prefix(Self.byteCount)))
    }

    /// Hexadecimal, as on the wire.
    public var text: String { Hexadecimal.text(bytes) }
}
