/// The version of the wire.
///
/// History: 1, the first (release 0.1.0), with differences, which are sent only where the log no
/// longer has the entries, or where they are asked for. A server accepts every version from `oldest` to
/// `current`; servers are deployed before devices.
public enum WireVersion {
    public static let current: Int64 = 1
    public static let oldest: Int64 = 1
}
