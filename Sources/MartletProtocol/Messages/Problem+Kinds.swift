extension Problem {
    /// Whether a Martlet server gave this answer. Any other answer came from a proxy, a Wi-Fi login
    /// page, or another server at the address.
    public var isOfServer: Bool { Self.kinds.contains(kind) }

    /// All kinds that `docs/wire.md` and `docs/tokens.md` list, and that of the scripted server.
    static let kinds: Set = [
        "malformed", "versionUnsupported", "badRequest", "invalidRequest", "unauthorized",
        "tokenClaims", "tokenMalformed", "tokenAlgorithm", "tokenKey", "tokenForged",
        "tokenExpired", "tokenNotYet", "tokenAudience", "tokenIssuer", "originRefused",
        "clientBound", "tooManyDevices", "notFound", "noSnapshot", "noSnapshotFile",
        "methodNotAllowed",
        "notAcceptable", "timeout", "wrongDataSet", "revisionAhead", "lineage", "view",
        "identityReused",
        "tooLarge", "unsupportedMediaType", "unsupportedEncoding", "rangeNotSatisfiable",
        "expectation", "upgradeRequired", "tooManyConnections", "headTooLarge", "notImplemented",
        "gone", "busy", "storage", "httpVersion", "scripted",
    ]

    /// Returns a problem for an answer that did not come from the server.
    public static func unrecognized(status: Int) -> Problem {
        let guess =
            switch status {
            case 200...399, 401, 403, 511: "Perhaps a Wi-Fi wants a login."
            case 407: "A proxy wants a login."
            case 413: "A proxy takes less at once."
            default: "Perhaps the server is away, or the address is not its own."
            }
        return Problem(
            status: status, kind: unknownKind,
            detail:
                "Something between this device and the server answered with status \(status). \(guess)"
        )
    }
}
