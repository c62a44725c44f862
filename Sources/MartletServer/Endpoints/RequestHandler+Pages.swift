internal import DeflateKit
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletRedis
internal import SystemKit

extension RequestHandler {
    /// Answers `GET /schema` with the types of a data set.
    func schema(_ request: HTTPRequest) async -> Outcome {
        do {
            let token = try await admitted(request)
            let acceptsGzip = ContentCoding.acceptsGzip(request.headers["accept-encoding"])
            let document = try await dataSets.use(token.dataSet) { $0.schemaDocument }
            var outcome = Outcome.json(
                document, gzip: acceptsGzip ? OneShotGzip.compress(document) : nil)
            outcome.note(token)
            return outcome
        } catch {
            return failed(error)
        }
    }

    /// Answers `GET /healthz`: the server runs and has its data folder.
    func health(_ request: HTTPRequest) async -> Outcome { await health(request, limited: 0) }

    /// Answers that the server runs and has its data folder, or that it has not.
    ///
    /// - Parameter limited: The number of data sets with tables that cannot be served.
    private func health(_ request: HTTPRequest, limited: Int) async -> Outcome {
        do {
            try await tokens.run { try $0.checkFolder() }
            let more = limited > 0 ? ",\"limited\":\(limited)" : ""
            return .json([UInt8]("{\"status\":\"ok\"\(more)}".utf8), gzip: nil)
        } catch {
            return failed(error)
        }
    }

    /// Answers `GET /readyz`: the server will answer requests.
    ///
    /// It is ready if the storage of every open data set answers and can be written to, and if this
    /// process knows the change sets that other processes wrote. If another program keeps tables
    /// locked, or some external writes cannot be read, the server still serves all the rest, as
    /// every other server does. The answer then mentions it, with status 200.
    func readiness(_ request: HTTPRequest) async -> Outcome {
        let hindrances = dataSets.hindrances()
        guard hindrances.isEmpty else {
            // Clients must not see the names of data sets. The log has them.
            log.log(
                .warning, "notReady",
                hindrances.flatMap {
                    [("dataSet", .text($0.dataSet)), ("reason", .text($0.reason))]
                })
            return Outcome(
                .notReady(
                    "\(hindrances.count) of \(dataSets.counts.open) data sets cannot be served just now."
                )
            )
        }
        return await health(request, limited: dataSets.limitedCount)
    }

    /// Answers `GET /metrics`, for programs on this machine only. The page needs no token, and a
    /// proxy that forwards a request says so in a header.
    func metricsText(_ request: HTTPRequest) async -> Outcome {
        let isLocal = request.peer == "::1" || request.peer.hasPrefix("127.")
        let isPassedOn = ["x-forwarded-for", "forwarded", "x-real-ip", "via"].contains {
            request.headers.lineCount($0) > 0
        }
        guard isLocal, !isPassedOn else { return Outcome(Problem.notFound) }
        let text = metrics.text(
            queueDepths: dataSets.queueDepths, changed: dataSets.changed,
            dataSets: dataSets.counts, blockedWriters: dataSets.blockedWriters,
            lockedTables: dataSets.lockedTables,
            server: await counters(),
            usage: ProcessUsage.current(), redis: redis?.counters.current,
            following: await dataSets.followingStates())
        return Outcome(
            HTTPResponse(
                status: 200,
                headers: [HTTPField("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
                body: [[UInt8](text.utf8)]))
    }
}
