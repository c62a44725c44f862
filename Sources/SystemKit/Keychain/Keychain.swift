#if canImport(Security)
    internal import Foundation
    internal import Security

    /// The generic passwords of one service in the keychain. Every call blocks.
    ///
    /// They stay on this device and are not stored in iCloud. They can be read once the device was
    /// unlocked after its start, so that work in the background continues while it is locked.
    public struct Keychain: Sendable {
        /// The name of the service (`kSecAttrService`).
        public let service: String
        /// The group of apps that share them; nil for this app alone.
        public let accessGroup: String?
        /// Whether to use the keychain of apps on macOS, as on the other platforms. Only signed
        /// apps have it; another program has the user's login keychain.
        public let isForApps: Bool

        /// Creates access to the items of a service.
        public init(service: String, accessGroup: String?, isForApps: Bool) {
            self.service = service
            self.accessGroup = accessGroup
            self.isForApps = isForApps
        }

        /// Adds an item, or replaces its content.
        public func set(_ bytes: [UInt8], for account: String) throws(KeychainError) {
            var status = update(account, to: bytes)
            if status == errSecItemNotFound {
                var item = query(account)
                for (key, value) in content(bytes) { item[key] = value }
                status = SecItemAdd(item as CFDictionary, nil)
                // Another thread or process has added the item meanwhile.
                if status == errSecDuplicateItem { status = update(account, to: bytes) }
            }
            guard status == errSecSuccess else { throw KeychainError(status) }
        }

        /// Returns an item's content; nil if there is no such item.
        public func item(_ account: String) throws(KeychainError) -> [UInt8]? {
            var query = query(account)
            query[kSecReturnData as String] = true
            query[kSecMatchLimit as String] = kSecMatchLimitOne
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess else { throw KeychainError(status) }
            // The system returns no data for an item without content.
            return (found as? Data).map { [UInt8]($0) } ?? []
        }

        /// Removes an item.
        /// - Returns: False if there is no such item.
        @discardableResult
        public func remove(_ account: String) throws(KeychainError) -> Bool {
            let status = SecItemDelete(query(account) as CFDictionary)
            if status == errSecItemNotFound { return false }
            guard status == errSecSuccess else { throw KeychainError(status) }
            return true
        }

        /// Returns the names of the service's items, in no order.
        public func accounts() throws(KeychainError) -> [String] {
            var query = query(nil)
            query[kSecReturnAttributes as String] = true
            query[kSecMatchLimit as String] = kSecMatchLimitAll
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            if status == errSecItemNotFound { return [] }
            guard status == errSecSuccess else { throw KeychainError(status) }
            let items = found as? [[String: Any]] ?? []
            return items.compactMap { $0[kSecAttrAccount as String] as? String }
        }

        private func update(_ account: String, to bytes: [UInt8]) -> OSStatus {
            SecItemUpdate(query(account) as CFDictionary, content(bytes) as CFDictionary)
        }

        private func content(_ bytes: [UInt8]) -> [String: Any] {
            [
                kSecValueData as String: Data(bytes),
                kSecAttrAccessible as String:
                    kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            ]
        }

        private func query(_ account: String?) -> [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword,
                kSecAttrService as String: service,
                kSecUseDataProtectionKeychain as String: isForApps,
            ]
            if let account { query[kSecAttrAccount as String] = account }
            if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
            return query
        }
    }
#endif
