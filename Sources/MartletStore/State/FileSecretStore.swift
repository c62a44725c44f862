package import SystemKit

/// Secrets in a private folder: one file each, that only its owner may read. For Linux, and for
/// programs without a keychain.
///
/// What protects them is the file system, as for SSH keys: other users cannot read them, other
/// programs of the same user and copies of the disk can. The folder (mode 700) is made with the
/// first secret; the files have mode 600. A folder or file that others may read, or that belongs to
/// someone else, is refused with a sentence that says what to do, because the secrets in it may be
/// known by now.
///
/// A secret is written to a file of another name, brought to the disk and put in place, so that a
/// kill or a power cut leaves the old one or the new one. Several stores and processes may use one
/// folder.
public final class FileSecretStore: SecretStore {
    /// The folder's path.
    public let folder: String
    private let state: Confined<StateFolder>

    /// The secrets of a folder. Nothing is read or made yet.
    /// - Parameter folder: The path of a folder that is used for nothing else. On a computer with
    ///   several users, one inside the home folder.
    public convenience init(folder: String) {
        self.init(folder: folder, faults: nil)
    }

    package init(folder: String, faults: FileFaults?) {
        self.folder = folder
        var state = StateFolder(path: folder, faults: faults)
        state.check = { try Self.check($0, what: "folder for secrets", mode: "700") }
        self.state = Confined(label: "martlet.secrets", state)
    }

    /// Keeps a secret, in the place of the one before.
    public func set(_ secret: [UInt8], for name: String) async throws {
        try SecretLimits.check(name: name)
        try SecretLimits.check(secret: secret)
        try await state.run { folder in
            try folder.made { try $0.write(secret, as: Self.fileName(name)) }
        }
    }

    /// The secret of that name; nil where there is none.
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
    public func remove(_ name: String) async throws {
        try SecretLimits.check(name: name)
        _ = try await state.run { folder in
            try folder.existing { try $0.remove(Self.fileName(name)) }
        }
    }

    /// The names of all secrets, sorted by their bytes.
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
