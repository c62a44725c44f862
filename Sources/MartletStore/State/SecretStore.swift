/// Where an app keeps secrets: tokens, keys, passwords. Few and small; never in settings, never in
/// the database, whose copies go far.
///
/// The contract of every implementation:
/// - A name is any text of 1 to 80 bytes of UTF-8. Names are compared byte by byte.
/// - A secret is 0 to 65,536 bytes. Setting one takes the place of the one before, whole: whenever
///   the process is killed, the old one or the new one is there.
/// - What is set is there for every other store on the same place, also in other processes, once
///   `set` has returned.
/// - Calls may come from any task, and do not hold the threads tasks run on.
/// - Errors are `StoreError`, and hold no secret: `.value` for a name or secret that is not allowed,
///   `.file` for a place that is not safe or not usable, `.inputOutput` where this user may not.
public protocol SecretStore: Sendable {
    /// Keeps a secret under a name, in the place of the one before.
    func set(_ secret: [UInt8], for name: String) async throws
    /// The secret of that name; nil where there is none.
    func secret(for name: String) async throws -> [UInt8]?
    /// Removes the secret of that name, if there is one.
    func remove(_ name: String) async throws
    /// The names of all secrets, sorted by their bytes.
    func names() async throws -> [String]
}

extension SecretStore {
    /// Keeps a text as a secret, as UTF-8.
    public func set(_ text: String, for name: String) async throws {
        try await set([UInt8](text.utf8), for: name)
    }

    /// The secret of that name as text; nil where there is none.
    /// - Throws: `StoreError` (`.value`) where the secret is not UTF-8, and what `secret(for:)`
    ///   throws.
    public func text(for name: String) async throws -> String? {
        guard let secret = try await secret(for: name) else { return nil }
        guard let text = String(validating: secret, as: UTF8.self) else {
            throw StoreError(
                .value, "A secret of UTF-8 was expected, and this one is not. Read it as bytes.")
        }
        return text
    }
}
