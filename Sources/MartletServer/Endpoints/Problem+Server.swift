internal import HTTPKit
internal import MartletModel
internal import MartletProtocol

/// The problems that the HTTP layer reports; `docs/wire.md` lists every kind.
extension Problem {
    static let notFound = Problem(
        status: 404, kind: "notFound",
        detail:
            "There is nothing here; this server answers /sync, /deltas, /schema, /snapshot, /healthz, /readyz, /metrics."
    )

    static func methodNotAllowed(_ allowed: String) -> Problem {
        Problem(
            status: 405, kind: "methodNotAllowed",
            detail: "This address takes \(allowed) and nothing else.")
    }

    static let unauthorized = Problem(
        status: 401, kind: "unauthorized",
        detail: "A good token is needed in the header “Authorization: Bearer …”.")

    static let originRefused = Problem(
        status: 403, kind: "originRefused",
        detail: "Pages of this origin may not connect; the server's --allow-origin names others.")

    static let unsupportedMediaType = Problem(
        status: 415, kind: "unsupportedMediaType",
        detail: "The body must be JSON, with “Content-Type: application/json”.")

    static let unsupportedEncoding = Problem(
        status: 415, kind: "unsupportedEncoding",
        detail: "The body may be plain or gzip; its Content-Encoding is neither.")

    /// The problem with a request for a snapshot of a view that names no device. The server notes which device
    /// is given which view.
    static func unnamedDevice(_ kind: String) -> Problem {
        Problem(
            status: 404, kind: kind,
            detail: """
                The user sees a part of the data set, and a snapshot of it is only for a device: name the device \
                with “?client=…”, or begin with POST /sync.
                """)
    }

    static func malformed(_ detail: String) -> Problem {
        Problem(status: 400, kind: "malformed", detail: detail)
    }

    static func tooLarge(_ detail: String) -> Problem {
        Problem(status: 413, kind: "tooLarge", detail: detail)
    }

    static let versionUnsupported = Problem(
        status: 400, kind: "versionUnsupported",
        detail: """
            This server speaks the wire versions \(WireVersion.oldest) to \(WireVersion.current); \
            update the app or the server.
            """)

    static func busy(_ detail: String) -> Problem {
        Problem(status: 503, kind: "busy", detail: detail, retryAfter: 1)
    }

    /// The problem for the log and the metrics when the client has gone: nobody reads it.
    static let gone = Problem(
        status: 499, kind: "gone", detail: "The client went away before it was answered.")

    static let stopping = Problem(
        status: 503, kind: "busy", detail: "The server is stopping; try again in a moment.",
        retryAfter: 2)

    static let storage = Problem(
        status: 503, kind: "storage",
        detail: "The server could not reach its storage; nothing was changed. Try again.",
        retryAfter: 5)

    static let dataSetCannotBeOpened = Problem(
        status: 503, kind: "storage",
        detail: "The server could not open the data set of your token; its log says why.",
        retryAfter: 10)

    static let tablesNotTakenUp = Problem(
        status: 503, kind: "storage",
        detail: """
            The data set's tables have changed, and the server cannot take them up as they are now; its log says \
            why.
            """,
        retryAfter: 5)

    static let dataSetNotServed = Problem(
        status: 503, kind: "storage",
        detail: "This server does not have the data set of your token; ask who runs it.",
        retryAfter: 60)

    static func notReady(_ detail: String) -> Problem {
        Problem(status: 503, kind: "storage", detail: detail, retryAfter: 1)
    }

    /// The problem as an HTTP response.
    var response: HTTPResponse {
        var headers = [HTTPField("Content-Type", "application/problem+json")]
        if let retryAfter { headers.append(HTTPField("Retry-After", String(retryAfter))) }
        return HTTPResponse(status: status, headers: headers, body: [SyncCoder.encode(self)])
    }

    /// Makes the problem of a refusal by the HTTP server.
    init(_ refusal: HTTPRefusal) {
        self.init(
            status: refusal.status, kind: refusal.kind, detail: refusal.detail,
            retryAfter: refusal.retryAfterSeconds.map(Int64.init))
    }
}
