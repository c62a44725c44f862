internal import Dispatch
internal import Foundation
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import SQLiteKit
internal import SQLiteRecords
internal import Synchronization
internal import SystemKit

/// A sync server over one data directory: HTTP, tokens, and a writer for each data set.
///
/// ```swift
/// let server = MartletServer(ServerConfiguration(dataDirectory: "/srv/martlet", schema: script))
/// let port = try await server.start()
/// // …
/// await server.stop()
/// ```
public final class MartletServer: Sendable {
    /// The parts of a started server.
    private struct Running: Sendable {
        let lock: Confined<DirectoryLock>
        let tokens: Confined<TokenAuthenticator>
        let dataSets: DataSetDirectory
        let redis: RedisHub?
        let http: HTTPServer
        let certificate: CertificateWatch?
    }

    private let configuration: ServerConfiguration
    private let running = Mutex<Running?>(nil)

    /// Makes a server, which `start()` starts.
    public init(_ configuration: ServerConfiguration) {
        self.configuration = configuration
    }

    /// Opens the data directory and listens.
    ///
    /// - Returns: The port.
    /// - Throws: `ServerFailure`, `SchemaError` or `HTTPServerError`: sentences that say what to
    ///   do. The server then does not run.
    public func start() async throws -> Int {
        guard running.withLock({ $0 == nil }) else {
            throw ServerFailure("This server is running already; make another one.")
        }
        let options = try configuration.httpOptions()
        let origins = try OriginRule(configuration.allowedOrigins)
        let sources = try await DataSources(configuration)
        let directory = configuration.dataDirectory
        let lock = try await Confined.making(label: "martlet.lock") {
            try TokenStore.makeDirectory(directory)
            return try DirectoryLock(directory: directory)
        }
        let metrics = Metrics()
        let counters = CountersSource()
        let dataSets = makeDirectory(sources, metrics, counters)
        do {
            let tokens = try await makeTokens(sources)
            let named = try await tokens.run { $0.dataSets }
            let names = try sources.names(in: directory, ofTokens: named, log: configuration.log)
            try await dataSets.begin(with: names)
            sources.redis?.listen()
            let http = makeHTTP(
                options, tokens, dataSets, sources.redis, metrics, origins, counters)
            let certificate = options.tls.map {
                CertificateWatch($0, log: configuration.log, now: configuration.now)
            }
            let port = try await http.start()
            certificate?.start(http, every: configuration.certificateEvery)
            running.withLock {
                $0 = Running(
                    lock: lock, tokens: tokens, dataSets: dataSets, redis: sources.redis,
                    http: http,
                    certificate: certificate)
            }
            if let fitting = await http.connectionsForWantOfFiles() {
                configuration.log.log(
                    .warning, "descriptors",
                    [
                        ("reason", .text(Self.fewDescriptors)),
                        ("connections", .number(fitting)),
                        ("wanted", .number(options.maxConnections)),
                    ])
            }
            configuration.log.log(
                .info, "started",
                [
                    ("port", .number(port)), ("dataSets", .number(names.count)),
                ] + sources.schemaFields)
            return port
        } catch {
            sources.redis?.stop()
            await dataSets.stop()
            await lock.end()
            throw error
        }
    }

    /// The number of requests that wait for a change.
    var waitingListeners: Int {
        get async { running.withLock { $0?.dataSets }?.waitingListeners ?? 0 }
    }

    /// Stops accepting requests, finishes the accepted ones, and closes the files with their
    /// write-ahead logs written back. Does nothing if the server does not run.
    public func stop() async {
        let stopping = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let stopping else { return }
        // Requests that only wait for a change would delay the stop.
        stopping.dataSets.releaseListeners()
        stopping.redis?.stop()
        stopping.certificate?.stop()
        await stopping.http.stop(grace: configuration.stopGrace)
        await stopping.dataSets.stop()
        await stopping.tokens.end()
        await stopping.lock.end()
        configuration.log.log(.info, "stopped")
    }

    /// Runs a server until the process is asked to end (SIGTERM, SIGINT) or the task is cancelled,
    /// and then stops it in good order.
    ///
    /// - Parameters:
    ///   - configuration: The data sets, and how the server serves them.
    ///   - started: Called with the port once the server listens.
    /// - Throws: The errors of `start()`.
    public static func run(
        _ configuration: ServerConfiguration,
        started: @Sendable (_ port: Int) -> Void = { _ in }
    ) async throws {
        // The signal is awaited before the start, so that an early one is not lost.
        let signal = await TerminationSignal()
        let server = MartletServer(configuration)
        do {
            started(try await server.start())
        } catch {
            await signal.end()
            throw error
        }
        _ = await signal.wait()
        await server.stop()
    }

    private static let fewDescriptors = """
        The process may open too few files for all connections it should take; raise the limit: \
        “ulimit -Hn” in the shell that starts it, or LimitNOFILE= in its systemd unit.
        """

    // MARK: - Starting

    private func makeTokens(_ sources: DataSources) async throws -> Confined<TokenAuthenticator> {
        let configuration = configuration
        let isAmbiguous =
            configuration.signedTokens != nil
            && configuration.tokens.contains { SignedTokens.isSigned([UInt8]($0.token.utf8)) }
        guard !isAmbiguous else {
            throw ServerFailure(
                "With --jwt-keys a fixed token may not have two dots: it would be taken for a JWT.")
        }
        return try await Confined.making(label: "martlet.tokens") {
            TokenAuthenticator(
                index: try TokenIndex(
                    store: TokenStore(directory: configuration.dataDirectory),
                    databases: sources.tokens, fixed: configuration.tokens,
                    salts: sources.tokenSalts),
                signed: try configuration.signedTokens.map { settings throws(ServerFailure) in
                    try SignedTokens(settings, log: configuration.log)
                }, now: configuration.now)
        }
    }

    private func makeDirectory(
        _ sources: DataSources, _ metrics: Metrics, _ counters: CountersSource
    ) -> DataSetDirectory {
        let configuration = configuration
        // The queue ranks below the requests, and makes one snapshot at a time.
        let queue = DispatchQueue(label: "martlet.snapshots", qos: .utility)
        let telling = DataSetDirectory.Telling(
            metrics: metrics, log: configuration.log, later: configuration.later)
        var limits = DataSetDirectory.Limits()
        if sources.isEmbedded {
            limits.areFiles = true
            limits.idle = configuration.closeAfter
            let shares = DescriptorShares(limit: DescriptorLimit.raised())
            limits.open = { [mostOpen = configuration.mostOpen] in
                min(
                    mostOpen, shares.dataSets(connections: await counters.current().openConnections)
                )
            }
        }
        let pulse = Pulse()
        return DataSetDirectory(telling, limits: limits) { name, changed in
            try await DataSetService(
                .init(
                    backing: try sources.backing(of: name, configuration), rules: sources.rules,
                    dependencyWaitSeconds: configuration.dependencyWaitSeconds,
                    keepRevisions: configuration.keepRevisions,
                    cacheBytes: configuration.cacheBytes, now: configuration.now,
                    snapshots: .init(
                        folder: "\(configuration.dataDirectory)/snapshots/\(name)",
                        plan: sources.plan, every: configuration.snapshotEvery,
                        views: configuration.viewSnapshots, queue: queue,
                        later: configuration.later),
                    pulse: pulse, redis: sources.redis),
                DataSetReports(
                    dataSet: name, metrics: metrics, serverLog: configuration.log,
                    changed: changed))
        }
    }

    private func makeHTTP(
        _ options: HTTPServerOptions, _ tokens: Confined<TokenAuthenticator>,
        _ dataSets: DataSetDirectory, _ redis: RedisHub?, _ metrics: Metrics,
        _ origins: OriginRule, _ counters: CountersSource
    ) -> HTTPServer {
        let handler = RequestHandler(
            tokens: tokens, dataSets: dataSets, redis: redis, metrics: metrics,
            log: configuration.log, counters: { await counters.current() }, origins: origins,
            tokenDeadline: configuration.tokenDeadline, heartbeat: configuration.heartbeat,
            now: configuration.now)
        var options = options
        options.maxBodyBytes = Limits.requestBytes
        options.otherFiles = { DescriptorShares.other(openDataSets: dataSets.counts.open) }
        options.refusal = { refusal in
            let problem = Problem(refusal)
            metrics.countRequest(
                endpoint: "other", status: problem.status, kind: problem.kind, answerBytes: 0)
            return problem.response
        }
        let http = HTTPServer(options: options) {
            await handler.admission(of: $0)
        } handler: {
            await handler.answer($0)
        }
        counters.set(http)
        return http
    }
}

/// Holds the HTTP server weakly for the metrics: the server is made after its handler, and owns it.
private final class CountersSource: Sendable {
    private struct Weak: Sendable {
        weak var server: HTTPServer?
    }

    private let weak = Mutex(Weak())

    func set(_ server: HTTPServer) {
        weak.withLock { $0.server = server }
    }

    func current() async -> HTTPServerCounters {
        guard let server = weak.withLock({ $0.server }) else { return HTTPServerCounters() }
        return await server.counters()
    }
}
