/// Stores secrets that end with the process, for tests.
public actor MemorySecretStore: SecretStore {
    /// The secrets by the names' bytes; as texts, two spellings of “é” would be one name.
    private var secrets: [[UInt8]: [UInt8]] = [:]

    /// Creates a store without secrets.
    public init() {}

    /// Stores a secret, and replaces the one before.
    /// - Throws: `StoreError` `.value` if the name or the secret is not allowed.
    public func set(_ secret: [UInt8], for name: String) throws {
        try SecretLimits.check(name: name)
        try SecretLimits.check(secret: secret)
        secrets[[UInt8](name.utf8)] = secret
    }

    /// Returns the secret of that name; nil if there is none.
    /// - Throws: `StoreError` `.value` if the name is not allowed.
    public func secret(for name: String) throws -> [UInt8]? {
        try SecretLimits.check(name: name)
        return secrets[[UInt8](name.utf8)]
    }

    /// Removes the secret of that name, if there is one.
    /// - Throws: `StoreError` `.value` if the name is not allowed.
    public func remove(_ name: String) throws {
        try SecretLimits.check(name: name)
        secrets[[UInt8](name.utf8)] = nil
    }

    /// Returns the names of all secrets, sorted by their bytes.
    public func names() -> [String] {
        SecretLimits.sorted(secrets.keys.map { String(decoding: $0, as: UTF8.self) })
    }
}
