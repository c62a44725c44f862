internal import MartletCore
internal import OpenSSLKit

/// The good tokens in memory, brought up to date whenever another process changed the file.
///
/// Tokens are found by their hash. What a guess can learn from the time of the look-up is bytes of
/// a SHA-256, which lead to no token; the hash itself is compared in constant time.
struct TokenIndex {
    private let store: TokenStore
    private let fixed: [TokenStore.Entry]
    private var version: Int64
    private var entries: [UInt64: [TokenStore.Entry]] = [:]

    /// - Parameter salts: By data set: what the names of fixed tokens are made with, where several
    ///   servers have to call a token by one name. Others are called by names of this folder's.
    init(store: TokenStore, fixed: [FixedToken], salts: [String: [UInt8]] = [:]) throws {
        self.store = store
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
        version = try store.version()
        try load()
    }

    /// The data sets that good tokens open.
    var dataSets: Set<String> {
        Set(entries.values.joined().map(\.record.dataSet))
    }

    /// What a token stands for; nil when it is unknown or revoked, by whichever process.
    mutating func record(of token: [UInt8]) throws -> TokenRecord? {
        _ = try generation()
        let hash = SHA256.digest(token)
        var found: TokenRecord?
        for entry in entries[Self.bucket(hash)] ?? [] where constantTimeEqual(entry.hash, hash) {
            found = entry.record
        }
        return found
    }

    /// A number that changes whenever a token may have; the tokens are brought up to date with it.
    mutating func generation() throws -> Int64 {
        let current = try store.version()
        if current != version {
            version = current
            try load()
        }
        return current
    }

    private mutating func load() throws {
        entries.removeAll(keepingCapacity: true)
        for entry in try store.entries() + fixed where entry.record.revoked == nil {
            entries[Self.bucket(entry.hash), default: []].append(entry)
        }
    }

    private static func bucket(_ hash: [UInt8]) -> UInt64 {
        hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
