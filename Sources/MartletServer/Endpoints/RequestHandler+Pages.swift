internal import DeflateKit
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletRedis
internal import SystemKit

extension RequestHandler {
    /// `GET /schema`: the types a data set consists of.
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

    /// `GET /healthz`: the server runs, and has its data folder.
    func health(_ request: HTTPRequest) async -> Outcome { await health(request, limited: 0) }

    /// - Parameter limited: Data sets that have tables which cannot be served.
    private func health(_ request: HTTPRequest, limited: Int) async -> Outcome {
        do {
            try await tokens.run { try $0.checkFolder() }
            let more = limited > 0 ? ",\"limited\":\(limited)" : ""
            return .json([UInt8]("{\"status\":\"ok\"\(more)}".utf8), gzip: nil)
        } catch {
            return failed(error)
        }
    }

    /// `GET /readyz`: requests will be answered. The storage of every data set that is open answers,
    /// can be written to, and what other processes wrote is known here. If another program keeps tables
    /// locked, or some of its writes cannot be read, all the rest is served, here as on every other server:
    /// the answer says it, and is 200.
    func readiness(_ request: HTTPRequest) async -> Outcome {
        let hindrances = dataSets.hindrances()
        guard hindrances.isEmpty else {
            // The names of data sets are nobody's business; the log has them.
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

    /// `GET /metrics`, for programs on this machine only: there is no token for it, and a proxy
    /// that passes requests on says so in a header.
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
