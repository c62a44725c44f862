/// The limits of every secret store.
enum SecretLimits {
    /// The maximum bytes of a name in UTF-8. Encoded as a file's name, it has up to three times as
    /// many.
    static let nameBytes = 80
    /// The maximum bytes of a secret.
    static let secretBytes = 65_536

    static func check(name: String) throws(StoreError) {
        guard (1...nameBytes).contains(name.utf8.count) else {
            throw StoreError(
                .value,
                "A secret's name has 1 to \(nameBytes) bytes of UTF-8; this one has"
                    + " \(name.utf8.count). Use another.")
        }
    }

    static func check(secret: [UInt8]) throws(StoreError) {
        guard secret.count <= secretBytes else {
            throw StoreError(
                .value,
                "A secret has at most \(secretBytes) bytes; this one has"
                    + " \(secret.count). Encrypt the data, and keep the key here.")
        }
    }

    /// Returns the names sorted by bytes, not by Unicode's rules, so that all stores agree.
    static func sorted(_ names: [String]) -> [String] {
        names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
