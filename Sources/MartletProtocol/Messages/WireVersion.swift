/// The version of the wire.
///
/// History: 1 is the first (release 0.1.0). It has differences, which the server sends only if the
/// log no longer has the entries, or if the device asks for them. A server accepts every version
/// from `oldest` to `current`; servers are deployed before devices.
package enum WireVersion {
    /// The version that this release writes.
    package static let current: Int64 = 1
    /// The oldest version that a server of this release accepts.
    package static let oldest: Int64 = 1
}
