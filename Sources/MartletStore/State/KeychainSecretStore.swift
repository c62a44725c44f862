#if canImport(Security)
    internal import SystemKit

    /// Stores secrets in the keychain of Apple's platforms.
    ///
    /// The secrets stay on this device: they are not in iCloud, and not in backups that are
    /// restored to another device. They can be read once the device was unlocked after its start,
    /// also while it is locked again. Before that, a call throws `StoreError` (`.busy`): try again
    /// once the device was unlocked.
    public final class KeychainSecretStore: SecretStore {
        private let keychain: Confined<Keychain>

        /// Creates a store for the secrets of a service.
        /// - Parameters:
        ///   - service: The name under which they are filed; usually the app's bundle identifier.
        ///   - accessGroup: The group of apps that share them; nil for this app alone.
        ///   - isForApps: On macOS, false for a program that is not a signed app, which uses the
        ///     user's login keychain. It has no effect on other platforms.
        public init(service: String, accessGroup: String? = nil, isForApps: Bool = true) {
            keychain = Confined(
                label: "martlet.keychain",
                Keychain(service: service, accessGroup: accessGroup, isForApps: isForApps))
        }

        /// Stores a secret, and replaces the one before.
        /// - Throws: `StoreError`; see `SecretStore`.
        public func set(_ secret: [UInt8], for name: String) async throws {
            try SecretLimits.check(name: name)
            try SecretLimits.check(secret: secret)
            try await run { try $0.set(secret, for: EncodedName.encoded(name)) }
        }

        /// Returns the secret of that name; nil if there is none.
        /// - Throws: `StoreError`; see `SecretStore`.
        public func secret(for name: String) async throws -> [UInt8]? {
            try SecretLimits.check(name: name)
            return try await run { try $0.item(EncodedName.encoded(name)) }
        }

        /// Removes the secret of that name, if there is one.
        /// - Throws: `StoreError`; see `SecretStore`.
        public func remove(_ name: String) async throws {
            try SecretLimits.check(name: name)
            _ = try await run { try $0.remove(EncodedName.encoded(name)) }
        }

        /// Returns the names of all secrets, sorted by their bytes.
        /// - Throws: `StoreError`; see `SecretStore`.
        public func names() async throws -> [String] {
            let accounts = try await run { try $0.accounts() }
            return SecretLimits.sorted(accounts.compactMap(EncodedName.decoded))
        }

        private func run<Result: Sendable>(
            _ body: @escaping @Sendable (Keychain) throws -> Result
        ) async throws -> Result {
            try await keychain.run { keychain in
                do {
                    return try body(keychain)
                } catch let error as KeychainError {
                    throw Self.refusal(error)
                }
            }
        }

        private static func refusal(_ error: KeychainError) -> StoreError {
            if error.isLocked {
                return StoreError(
                    .busy, "The keychain is locked. Try again once the device was unlocked.")
            }
            if error.isNotEntitled {
                return StoreError(
                    .file,
                    "The program is not signed for this keychain or group. Sign it with the"
                        + " entitlement, or use the login keychain (isForApps: false).")
            }
            if error.isRefused {
                return StoreError(
                    .inputOutput,
                    "The keychain was not opened for this program. Ask the person to"
                        + " allow it, then try again.")
            }
            return StoreError(
                .inputOutput, "The keychain refused (status \(error.status)). Look the status up.")
        }
    }
#endif
