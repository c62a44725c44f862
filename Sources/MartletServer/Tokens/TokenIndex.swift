internal import MartletModel
internal import OpenSSLKit

/// The good tokens in memory, brought up to date whenever another process changed the file.
///
/// Tokens are found by their hash. What a guess can learn from the time of the look-up is bytes of
/// a SHA-256, which lead to no token; the hash itself is compared in constant time.
struct TokenIndex {
    private let sources: [any TokenSource]
    /// Whether some of them stand on other machines.
    let isRemote: Bool
    private let fixed: [TokenStore.Entry]
    private var versions: [Int64] = []
    private var changes: Int64 = 0
    /// When the sources on other machines were last asked.
    private var looked: ContinuousClock.Instant?
    private var entries: [UInt64: [TokenStore.Entry]] = [:]

    /// - Parameters:
    ///   - databases: Tokens beside those of the folder.
    ///   - salts: By data set: what the names of fixed tokens are made with, where several
    ///   servers have to call a token by one name. Others are called by names of this folder's.
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

    /// How long a look waits for other processes that have a file locked.
    func setPatience(milliseconds: Int32) {
        for source in sources { source.setPatience(milliseconds: milliseconds) }
    }

    /// The data sets that good tokens open.
    var dataSets: Set<String> {
        Set(entries.values.joined().map(\.record.dataSet))
    }

    /// What a token stands for; nil when it is unknown or revoked, by whichever process.
    /// - Parameter asked: When the token was shown: databases need not be asked again that were asked
    ///   since, for others who waited too.
    mutating func record(
        of token: [UInt8], asked: ContinuousClock.Instant = .now
    ) throws -> TokenRecord? {
        let hash = SHA256.digest(token)
        // Nobody can revoke these.
        if let fixed = fixedRecord(hash: hash) { return fixed }
        _ = try generation(asked: asked)
        var found: TokenRecord?
        for entry in entries[Self.bucket(hash)] ?? [] where constantTimeEqual(entry.hash, hash) {
            found = entry.record
        }
        return found
    }

    /// What a token stands for that was given at the start; nil when it is none of those.
    func fixedRecord(of token: [UInt8]) -> TokenRecord? {
        fixedRecord(hash: SHA256.digest(token))
    }

    private func fixedRecord(hash: [UInt8]) -> TokenRecord? {
        for entry in fixed where constantTimeEqual(entry.hash, hash) { return entry.record }
        return nil
    }

    /// - Throws: What the data folder's store throws.
    func checkFolder() throws {
        _ = try sources.first { !$0.isRemote }?.version()
    }

    /// A number that changes whenever a token may have; the tokens are brought up to date with it.
    mutating func generation(asked: ContinuousClock.Instant = .now) throws -> Int64 {
        let isAnswered = looked.map { $0 > asked } ?? false
        var current: [Int64] = []
        let start = ContinuousClock.now
        for (place, source) in sources.enumerated() {
            let isKnown = isAnswered && source.isRemote && place < versions.count
            current.append(isKnown ? versions[place] : try source.version())
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
