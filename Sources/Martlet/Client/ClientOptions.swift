internal import Foundation

/// How a client keeps in step. The seams to time and chance have the platform's as default.
public struct ClientOptions: Sendable {
    public var node = DeviceNode.Options()
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64 = {
        Int64((Date().timeIntervalSince1970 * 1_000).rounded())
    }
    /// Evenly spread bits, for identities and jitter.
    public var randomBits: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    /// Reading connections.
    public var readers = 2

    public init() {}
}
