#if canImport(Security)
    internal import Security

    /// A refusal by the keychain.
    public struct KeychainError: Error, Hashable, Sendable {
        /// The result code (`OSStatus`).
        public let status: Int32

        init(_ status: OSStatus) {
            self.status = status
        }

        /// Whether the device is locked, or was not unlocked since its start.
        public var isLocked: Bool { status == errSecInteractionNotAllowed }
        /// Whether the program is not signed for this keychain or group.
        public var isNotEntitled: Bool { status == errSecMissingEntitlement }
        /// Whether a person refused the access.
        public var isRefused: Bool {
            status == errSecAuthFailed || status == errSecUserCanceled
        }
    }
#endif
