internal import OpenSSLKit

/// The chained hash of a log: SHA-256 over the previous hash and the entry, cut to 128 bits.
///
/// Two logs with the same hash at a revision are the same up to there. The hash tells a restored or
/// recreated data set from the one that a device knows. It is no proof against an attacker who
/// writes the log.
package struct LineageHash: Hashable, Sendable {
    // Two words take less memory than an array. A server keeps tens of thousands of hashes.
    private let high: UInt64
    private let low: UInt64

    /// The 16 bytes, as they are stored.
    package var bytes: [UInt8] {
        [high, low].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
        }
    }

    /// Makes a hash from stored bytes.
    ///
    /// - Parameter bytes: The first 16 bytes count, and missing ones are zero.
    package init(stored bytes: [UInt8]) {
        func word(from start: Int) -> UInt64 {
            (start..<(start + 8)).reduce(0) { word, index in
                word << 8 | UInt64(index < bytes.count ? bytes[index] : 0)
            }
        }
        high = word(from: 0)
        low = word(from: 8)
    }

    /// Makes the hash before the first entry.
    package init(origin identity: String) {
        self.init(stored: SHA256.digest(Array(identity.utf8)))
    }

    /// Returns the hash after one more entry.
    ///
    /// - Complexity: O(*n*) in the bytes of the entry.
    package func appending(_ body: [UInt8], identifier: String?) -> LineageHash {
        var hash = SHA256()
        hash.update(bytes)
        hash.update(Array((identifier ?? "").utf8))
        hash.update([0])
        hash.update(body)
        return LineageHash(stored: hash.finish())
    }

    /// The hash in hexadecimal, as on the wire.
    package var text: String { Hexadecimal.text(bytes) }
}
