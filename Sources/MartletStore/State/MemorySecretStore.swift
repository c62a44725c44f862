/// Secrets that are gone with the process, for tests.
public actor MemorySecretStore: SecretStore {
    /// By the names' bytes: as texts, two spellings of “é” would be one name.
    private var secrets: [[UInt8]: [UInt8]] = [:]

    /// A store without secrets.
    public init() {}

    /// Keeps a secret, in the place of the one before.
    public func set(_ secret: [UInt8], for name: String) throws {
        try SecretLimits.check(name: name)
        try SecretLimits.check(secret: secret)
        secrets[[UInt8](name.utf8)] = secret
    }

    /// The secret of that name; nil where there is none.
    public func secret(for name: String) throws -> [UInt8]? {
        try SecretLimits.check(name: name)
        return secrets[[UInt8](name.utf8)]
    }

    /// Removes the secret of that name, if there is one.
    public func remove(_ name: String) throws {
        try SecretLimits.check(name: name)
        secrets[[UInt8](name.utf8)] = nil
    }

    /// The names of all secrets, sorted by their bytes.
    public func names() -> [String] {
        SecretLimits.sorted(secrets.keys.map { String(decoding: $0, as: UTF8.self) })
    }
}
