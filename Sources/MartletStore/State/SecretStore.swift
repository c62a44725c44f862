/// Stores an app's secrets: tokens, keys, passwords. They are few and small. Never put them into
/// settings, or into the database, which may be copied to many places.
///
/// The contract of every implementation:
/// - A name is any text of 1 to 80 bytes of UTF-8. Names are compared byte by byte.
/// - A secret has 0 to 65,536 bytes. Setting one replaces the one before as a whole: if the process
///   is killed at any time, the old one or the new one is stored.
/// - Once `set` has returned, every other store on the same location has the secret, also in other
///   processes.
/// - Calls may come from any task, and do not block the threads that run tasks.
/// - Errors are `StoreError`, and hold no secret: `.value` if a name or secret is not allowed,
///   `.file` if the location is not safe or not usable, `.inputOutput` if this user has no
///   permission.
///
/// ```swift
/// let secrets: any SecretStore = FileSecretStore(folder: folder)
/// try await secrets.set(token, for: "server")
/// let stored = try await secrets.text(for: "server")
/// ```
public protocol SecretStore: Sendable {
    /// Stores a secret under a name, and replaces the one before.
    func set(_ secret: [UInt8], for name: String) async throws
    /// Returns the secret of that name; nil if there is none.
    func secret(for name: String) async throws -> [UInt8]?
    /// Removes the secret of that name, if there is one.
    func remove(_ name: String) async throws
    /// Returns the names of all secrets, sorted by their bytes.
    func names() async throws -> [String]
}

extension SecretStore {
    /// Stores a text as a secret, in UTF-8.
    /// - Throws: The errors of `set(_:for:)`.
    public func set(_ text: String, for name: String) async throws {
        try await set([UInt8](text.utf8), for: name)
    }

    /// Returns the secret of that name as text; nil if there is none.
    /// - Throws: `StoreError` (`.value`) if the secret is not UTF-8, and the errors of
    ///   `secret(for:)`.
    public func text(for name: String) async throws -> String? {
        guard let secret = try await secret(for: name) else { return nil }
        guard let text = String(validating: secret, as: UTF8.self) else {
            throw StoreError(
                .value, "A secret of UTF-8 was expected, and this one is not. Read it as bytes.")
        }
        return text
    }
}
