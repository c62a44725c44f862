internal import SQLiteKit

/// Where tokens are shown: the server's own, and those of an issuer.
struct TokenAuthenticator {
    private var index: TokenIndex
    private var signed: SignedTokens?
    /// Milliseconds since 1970.
    private let now: @Sendable () -> Int64

    /// - Parameter signed: Judges an issuer's tokens; nil where there is none, and every token is
    ///   looked for among the server's own.
    init(index: TokenIndex, signed: SignedTokens?, now: @escaping @Sendable () -> Int64) {
        self.index = index
        self.signed = signed
        self.now = now
    }

    /// The data sets that the server's own good tokens open.
    var dataSets: Set<String> { index.dataSets }

    /// What a token stands for.
    /// - Parameter asked: When it was shown.
    /// - Throws: `TokenDenial` where it is not good; what the storage throws.
    mutating func record(
        of token: [UInt8], asked: ContinuousClock.Instant
    ) throws -> TokenRecord {
        if isSigned(token) {
            let now = now()
            if let record = try signed?.record(of: token, now: now) { return record }
        } else if let record = try index.record(of: token, asked: asked) {
            return record
        }
        throw TokenDenial(.unknown)
    }

    /// The same on a thread that may not be kept waiting.
    /// - Returns: Nil where it would have to wait: for another machine, or for another process that has
    ///   the file of tokens locked.
    mutating func recordAtOnce(
        of token: [UInt8], asked: ContinuousClock.Instant
    ) throws -> TokenRecord? {
        guard isSigned(token) || !index.isRemote else { return index.fixedRecord(of: token) }
        index.setPatience(milliseconds: 0)
        defer { index.setPatience(milliseconds: TokenStore.patienceMilliseconds) }
        do {
            return try record(of: token, asked: asked)
        } catch let error as SQLiteError where error.isBusy {
            return nil
        }
    }

    private func isSigned(_ token: [UInt8]) -> Bool {
        signed != nil && SignedTokens.isSigned(token)
    }

    /// Looks whether the data folder can be read. Databases have a look of their own.
    func checkFolder() throws {
        try index.checkFolder()
    }

    /// A number that changes whenever a token that was good may be so no more, but for its time.
    mutating func generation() throws -> Int64 {
        signed?.refresh()
        return try index.generation() &+ (signed?.generation ?? 0) << 40
    }
}
