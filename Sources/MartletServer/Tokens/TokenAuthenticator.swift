internal import SQLiteKit

/// Checks the tokens that clients show: the server's own, and those of an issuer.
struct TokenAuthenticator {
    private var index: TokenIndex
    private var signed: SignedTokens?
    /// Returns the time, in milliseconds since 1970.
    private let now: @Sendable () -> Int64

    /// Makes an authenticator.
    ///
    /// - Parameter signed: Checks an issuer's tokens. If it is nil, every token is looked up among
    ///   the server's own.
    init(index: TokenIndex, signed: SignedTokens?, now: @escaping @Sendable () -> Int64) {
        self.index = index
        self.signed = signed
        self.now = now
    }

    /// The data sets for which the server's own good tokens are.
    var dataSets: Set<String> { index.dataSets }

    /// Returns the record of a token.
    ///
    /// - Parameter asked: The time when the client showed it.
    /// - Throws: `TokenDenial` if it is not good; the errors of the storage.
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

    /// Returns the record of a token, on a thread that must not wait.
    ///
    /// - Returns: Nil if that would have to wait for another machine, or for another process that
    ///   has the file of tokens locked.
    /// - Throws: The same errors as `record(of:asked:)`.
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

    /// Checks that the data folder can be read. Databases have a check of their own.
    func checkFolder() throws {
        try index.checkFolder()
    }

    /// Returns a number that changes whenever a good token may no longer be good, except by its
    /// expiry.
    mutating func generation() throws -> Int64 {
        signed?.refresh()
        return try index.generation() &+ (signed?.generation ?? 0) << 40
    }
}
