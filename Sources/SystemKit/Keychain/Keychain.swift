#if canImport(Security)
    internal import Foundation
    internal import Security

    /// The generic passwords of one service in the keychain. Every call blocks.
    ///
    /// They stay on this device and out of iCloud, and can be read from the first unlocking after a
    /// start on, so that work in the background goes on while the device is locked.
    public struct Keychain: Sendable {
        /// What the items are filed under (`kSecAttrService`).
        public let service: String
        /// The group of apps that share them; nil for this app alone.
        public let accessGroup: String?
        /// Whether the keychain of apps is used on macOS, as on the other platforms. It is there
        /// for signed apps only; a plain program has the user's login keychain.
        public let isForApps: Bool

        /// The items of a service.
        public init(service: String, accessGroup: String?, isForApps: Bool) {
            self.service = service
            self.accessGroup = accessGroup
            self.isForApps = isForApps
        }

        /// Adds an item, or gives it other content.
        public func set(_ bytes: [UInt8], for account: String) throws(KeychainError) {
            var status = update(account, to: bytes)
            if status == errSecItemNotFound {
                var item = query(account)
                for (key, value) in content(bytes) { item[key] = value }
                status = SecItemAdd(item as CFDictionary, nil)
                // Someone else was faster.
                if status == errSecDuplicateItem { status = update(account, to: bytes) }
            }
            guard status == errSecSuccess else { throw KeychainError(status) }
        }

        /// An item's content; nil where there is no such item.
        public func item(_ account: String) throws(KeychainError) -> [UInt8]? {
            var query = query(account)
            query[kSecReturnData as String] = true
            query[kSecMatchLimit as String] = kSecMatchLimitOne
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess else { throw KeychainError(status) }
            // An item without content comes without data.
            return (found as? Data).map { [UInt8]($0) } ?? []
        }

        /// Removes an item.
        /// - Returns: False where there is no such item.
        @discardableResult
        public func remove(_ account: String) throws(KeychainError) -> Bool {
            let status = SecItemDelete(query(account) as CFDictionary)
            if status == errSecItemNotFound { return false }
            guard status == errSecSuccess else { throw KeychainError(status) }
            return true
        }

        /// The names of the service's items, in no order.
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
