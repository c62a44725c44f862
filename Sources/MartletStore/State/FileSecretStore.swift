package import SystemKit

/// Stores secrets in a private folder: one file each, which only its owner may read. It is for
/// Linux, and for programs without a keychain.
///
/// The file system protects them, as it does SSH keys: other users cannot read them, but other
/// programs of the same user can, and so can a reader of a copy of the disk. The folder (mode 700)
/// is created with the first secret; the files have mode 600. If others may read a folder or file,
/// or it belongs to another user, it is refused with a sentence that says what to do, because the
/// secrets in it may no longer be secret.
///
/// A secret is written to a temporary file, flushed to the disk and renamed, so that a kill or a
/// power cut leaves the old one or the new one. Several stores and processes may use one folder.
public final class FileSecretStore: SecretStore {
    /// The folder's path.
    public let folder: String
    private let state: Confined<StateFolder>

    /// Creates a store for a folder. It does not read or create anything yet.
    /// - Parameter folder: The path of a folder that is used for nothing else. On a computer with
    ///   several users, it should be inside the home folder.
    public convenience init(folder: String) {
        self.init(folder: folder, faults: nil)
    }

    package init(folder: String, faults: FileFaults?) {
        self.folder = folder
        var state = StateFolder(path: folder, faults: faults)
        state.check = { try Self.check($0, what: "folder for secrets", mode: "700") }
        self.state = Confined(label: "martlet.secrets", state)
    }

    /// Stores a secret, and replaces the one before.
    /// - Throws: `StoreError`; see `SecretStore`.
    public func set(_ secret: [UInt8], for name: String) async throws {
        try SecretLimits.check(name: name)
        try SecretLimits.check(secret: secret)
        try await state.run { folder in
            try folder.made { try $0.write(secret, as: Self.fileName(name)) }
        }
    }

    /// Returns the secret of that name; nil if there is none.
    /// - Throws: `StoreError`; see `SecretStore`.
    public func secret(for name: String) async throws -> [UInt8]? {
        try SecretLimits.check(name: name)
        return try await state.run { folder in
            try folder.existing { folder in
                guard let file = try folder.file(Self.fileName(name)) else { return nil }
                let facts = try file.facts()
                guard facts.form == .file, facts.size <= SecretLimits.secretBytes else {
                    throw StoreError(
                        .file,
                        "The file of a secret was expected, and something else stands there."
                            + " Remove it.")
                }
                try Self.check(facts, what: "file of a secret", mode: "600")
                return try file.rest()
            }
        }
    }

    /// Removes the secret of that name, if there is one.
    /// - Throws: `StoreError`; see `SecretStore`.
    public func remove(_ name: String) async throws {
        try SecretLimits.check(name: name)
        _ = try await state.run { folder in
            try folder.existing { try $0.remove(Self.fileName(name)) }
        }
    }

    /// Returns the names of all secrets, sorted by their bytes.
    /// - Throws: `StoreError`; see `SecretStore`.
    public func names() async throws -> [String] {
        let names = try await state.run { folder in
            try folder.existing { try $0.names() } ?? []
        }
        return SecretLimits.sorted(names.compactMap(Self.name))
    }

    private static let suffix = ".secret"

    private static func fileName(_ name: String) -> String {
        EncodedName.encoded(name) + suffix
    }

    private static func name(_ fileName: String) -> String? {
        guard fileName.hasSuffix(suffix) else { return nil }
        return EncodedName.decoded(String(fileName.dropLast(suffix.count)))
    }

    private static func check(
        _ facts: FileFacts, what: String, mode: String
    ) throws(StoreError) {
        guard facts.isOwn else {
            throw StoreError(
                .file,
                "The \(what) must belong to the user who runs this program, and belongs to"
                    + " another. Use a folder of your own.")
        }
        guard !facts.isOpenToOthers else {
            let found = String(facts.permissions, radix: 8)
            throw StoreError(
                .file,
                "The \(what) must be open to its owner alone (mode \(mode)), and others may"
                    + " use it (mode \(found)). Run chmod \(mode) on it, and replace the secrets"
                    + " that others may have read.")
        }
    }
}
