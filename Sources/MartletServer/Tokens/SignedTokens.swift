internal import OpenSSLKit
internal import SystemKit
internal import WebTokens

/// Checks the tokens of an issuer, with keys that may change while the server runs.
struct SignedTokens {
    /// A number that rises whenever other keys were read.
    private(set) var generation: Int64 = 0
    private let settings: SignedTokenSettings
    private let log: ServerLog
    private var verifier: TokenVerifier
    private var stamp: FileStamp?
    private var checked: ContinuousClock.Instant
    /// The good tokens by their hash. To check a signature costs more than the rest of a small
    /// request.
    private var known: [[UInt8]: TokenRecord] = [:]

    private static let mostKnown = 4_096

    /// Reads the keys.
    ///
    /// - Throws: `ServerFailure` if they cannot be used.
    init(_ settings: SignedTokenSettings, log: ServerLog) throws(ServerFailure) {
        guard settings.leeway >= 0 else {
            throw ServerFailure("The leeway of clocks is a number of seconds from 0 on.")
        }
        self.settings = settings
        self.log = log
        stamp = FileStamp(path: settings.keyFile)
        checked = .now
        do {
            verifier = try Self.verifier(settings)
        } catch {
            throw ServerFailure("The keys of --jwt-keys cannot be used. \(error.description)")
        }
    }

    /// Returns whether a token is an issuer's: three parts with dots between. Such a token is never
    /// looked up among the server's own.
    static func isSigned(_ token: [UInt8]) -> Bool {
        token.reduce(0) { $0 + ($1 == UInt8(ascii: ".") ? 1 : 0) } == 2
    }

    /// Returns the record of a token.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Throws: `TokenDenial` if it is not good.
    mutating func record(of token: [UInt8], now: Int64) throws(TokenDenial) -> TokenRecord {
        refresh()
        let hash = SHA256.digest(token)
        if let record = known[hash] {
            guard record.isGood(at: now) else { throw TokenDenial(.refused(.expired)) }
            return record
        }
        let claims: TokenClaims
        do {
            claims = try verifier.claims(of: token, now: now / 1_000)
        } catch {
            throw TokenDenial(.refused(error))
        }
        let record = try record(claims, hash: hash, now: now)
        if known.count >= Self.mostKnown { known.removeAll(keepingCapacity: true) }
        known[hash] = record
        return record
    }

    private func record(
        _ claims: TokenClaims, hash: [UInt8], now: Int64
    ) throws(TokenDenial) -> TokenRecord {
        let roles = claims.list("roles")
        guard let dataSet = claims.text("dataset"), DataSetName.isValid(dataSet),
            let user = claims.subject, let expires = claims.expires, !claims.isOdd("roles"),
            ([user] + roles).allSatisfy(TokenText.isValid)
        else { throw TokenDenial(.incompleteClaims) }
        return TokenRecord(
            identifier: "jwt-" + Hexadecimal.text([UInt8](hash[..<6])), dataSet: dataSet,
            user: user, roles: roles, device: nil, created: now, revoked: nil,
            expires: (expires + settings.leeway) * 1_000, claims: claims.values)
    }

    /// Reads the keys again if their file has changed. Checks the file once a second at most.
    mutating func refresh() {
        let now = ContinuousClock.now
        guard now - checked >= .seconds(1) else { return }
        checked = now
        let found = FileStamp(path: settings.keyFile)
        guard found != stamp else { return }
        stamp = found
        do {
            verifier = try Self.verifier(settings)
            known.removeAll()
            generation += 1
            log.log(.info, "keys", [("reason", .text("The keys of tokens were read again."))])
        } catch {
            // The file may be half written. The former keys then stay valid, and no others become
            // so.
            log.log(
                .error, "keys",
                [
                    ("reason", .text(error.description)),
                    ("remedy", .text("The keys read before go on; correct the file.")),
                ])
        }
    }

    private static func verifier(
        _ settings: SignedTokenSettings
    ) throws(TokenKeyFault) -> TokenVerifier {
        TokenVerifier(
            keys: try TokenKeys.load(path: settings.keyFile), audience: settings.audience,
            issuer: settings.issuer, leeway: settings.leeway)
    }
}
