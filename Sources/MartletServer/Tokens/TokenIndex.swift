internal import MartletModel
internal import OpenSSLKit

/// The good tokens in memory, which are updated whenever another process changed the file.
///
/// Tokens are found by their hash. The time of a look-up can reveal some bytes of a SHA-256, which
/// lead to no token. The hash itself is compared in constant time.
struct TokenIndex {
    private let sources: [any TokenSource]
    /// True if some of the tokens are on other machines.
    let isRemote: Bool
    private let fixed: [TokenStore.Entry]
    private var versions: [Int64] = []
    private var changes: Int64 = 0
    /// The time when the sources on other machines were last asked.
    private var looked: ContinuousClock.Instant?
    private var entries: [UInt64: [TokenStore.Entry]] = [:]

    /// Reads the tokens of all sources.
    ///
    /// - Parameters:
    ///   - databases: Sources in addition to the folder's store.
    ///   - salts: The salts of the data sets whose fixed tokens must have the same name on several
    ///     servers. The folder's own salt makes the names of all others.
    init(
        store: TokenStore, databases: [any TokenSource] = [], fixed: [FixedToken],
        salts: [String: [UInt8]] = [:]
    ) throws {
        sources = [store] + databases
        isRemote = !databases.isEmpty
        let own = try store.salt()
        self.fixed = fixed.map { token in
            let bytes = [UInt8](token.token.utf8)
            let salt = salts[token.dataSet] ?? own
            let name = Hexadecimal.text([UInt8](SHA256.digest(salt + bytes)[..<6]))
            return TokenStore.Entry(
                hash: SHA256.digest(bytes),
                record: TokenRecord(
                    identifier: name, dataSet: token.dataSet, user: nil, roles: [], device: nil,
                    created: 0, revoked: nil))
        }
        _ = try generation()
    }

    /// Sets how long a look-up waits for other processes that have a file locked.
    func setPatience(milliseconds: Int32) {
        for source in sources { source.setPatience(milliseconds: milliseconds) }
    }

    /// The data sets for which there are good tokens.
    var dataSets: Set<String> {
        Set(entries.values.joined().map(\.record.dataSet))
    }

    /// Returns the record of a token; nil if the token is unknown, or any process has revoked it.
    ///
    /// - Parameter asked: The time when the client showed the token. A database that was asked
    ///   after it, for another request, is not asked again.
    mutating func record(
        of token: [UInt8], asked: ContinuousClock.Instant = .now
    ) throws -> TokenRecord? {
        let hash = SHA256.digest(token)
        // Fixed tokens cannot be revoked.
        if let fixed = fixedRecord(hash: hash) { return fixed }
        _ = try generation(asked: asked)
        var found: TokenRecord?
        for entry in entries[Self.bucket(hash)] ?? [] where constantTimeEqual(entry.hash, hash) {
            found = entry.record
        }
        return found
    }

    /// Returns the record of a token that was given at the start; nil if it is no such token.
    func fixedRecord(of token: [UInt8]) -> TokenRecord? {
        fixedRecord(hash: SHA256.digest(token))
    }

    private func fixedRecord(hash: [UInt8]) -> TokenRecord? {
        for entry in fixed where constantTimeEqual(entry.hash, hash) { return entry.record }
        return nil
    }

    /// Checks that the data folder can be read.
    ///
    /// - Throws: The errors of the folder's store.
    func checkFolder() throws {
        _ = try sources.first { !$0.isRemote }?.version()
    }

    /// Updates the tokens, and returns a number that changes whenever a token may have changed.
    mutating func generation(asked: ContinuousClock.Instant = .now) throws -> Int64 {
        let isAnswered = looked.map { $0 > asked } ?? false
        var current: [Int64] = []
        let start = ContinuousClock.now
        for (index, source) in sources.enumerated() {
            let isKnown = isAnswered && source.isRemote && index < versions.count
            current.append(isKnown ? versions[index] : try source.version())
        }
        if !isAnswered { looked = start }
        if current != versions {
            try load()
            versions = current
            changes += 1
        }
        return changes
    }

    private mutating func load() throws {
        var all = fixed
        for source in sources { all += try source.entries() }
        entries.removeAll(keepingCapacity: true)
        for entry in all where entry.record.revoked == nil {
            entries[Self.bucket(entry.hash), default: []].append(entry)
        }
    }

    private static func bucket(_ hash: [UInt8]) -> UInt64 {
        hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
