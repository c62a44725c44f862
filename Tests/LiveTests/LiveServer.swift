import Foundation
import Martlet
import MartletServer

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A server in this process over a folder of its own, that can be stopped and started on its port.
actor LiveServer {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            name TEXT NOT NULL
        );
        """
    static let token = "league-token"

    private let folder: URL
    private let schema: String
    private var server: MartletServer?
    private(set) var port = 0
    private let keepRevisions: Int64?

    private let snapshotEvery: Int64?
    private let tls: (certificate: String, key: String)?
    private var rules: String?

    /// - Parameters:
    ///   - keepRevisions: The entries that compaction leaves whole; nil for all.
    ///   - snapshotEvery: The revisions after which a snapshot is made; nil for the default.
    ///   - tls: Paths of PEM files; nil for plain HTTP.
    ///   - schema: The tables of the server and its devices.
    ///   - rules: A rules file; nil for none.
    init(
        keepRevisions: Int64? = nil, snapshotEvery: Int64? = nil,
        tls: (certificate: String, key: String)? = nil, schema: String = LiveServer.schema,
        rules: String? = nil
    ) throws {
        self.rules = rules
        self.schema = schema
        self.tls = tls
        self.keepRevisions = keepRevisions
        self.snapshotEvery = snapshotEvery
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-live-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Listens; after the first time on the same port.
    func start() async throws {
        var configuration = ServerConfiguration(
            dataDirectory: data, schema: schema)
        configuration.tokens = [try FixedToken(dataSet: "league", token: Self.token)]
        configuration.log = .silent
        configuration.port = port
        configuration.keepRevisions = keepRevisions
        configuration.rules = rules.map { Array($0.utf8) }
        if let snapshotEvery { configuration.snapshotEvery = snapshotEvery }
        configuration.viewSnapshots.leastRecords = 1
        configuration.tlsCertificatePath = tls?.certificate
        configuration.tlsKeyPath = tls?.key
        let server = MartletServer(configuration)
        port = try await server.start()
        self.server = server
    }

    func stop() async {
        await server?.stop()
        server = nil
    }

    /// Starts again with another rules file.
    func start(rules: String?) async throws {
        await stop()
        self.rules = rules
        try await start()
    }

    var url: URL {
        get throws {
            guard let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw URLError(.badURL)
            }
            return url
        }
    }

    /// A transport of its own.
    func transport(token: String = LiveServer.token) throws -> URLSessionTransport {
        try URLSessionTransport(server: try url, token: token)
    }

    /// One of the server's counters.
    func metric(_ name: String) async throws -> Int {
        let (data, _) = try await URLSession.shared.data(
            from: try url.appendingPathComponent("metrics"))
        let line = String(decoding: data, as: UTF8.self).split(separator: "\n").first {
            $0.hasPrefix(name + " ")
        }
        return line.flatMap { Int($0.split(separator: " ")[1]) } ?? 0
    }

    /// A token that can be revoked.
    nonisolated func makeToken(
        user: String? = nil, roles: [String] = []
    ) throws -> (text: String, identifier: String) {
        let made = try TokenStore(directory: data).create(
            dataSet: "league", user: user, roles: roles, now: 1)
        return (made.token, made.record.identifier)
    }

    nonisolated func revoke(_ token: (text: String, identifier: String)) throws {
        _ = try TokenStore(directory: data).revoke(token.identifier, now: 2)
    }

    private nonisolated var data: String { folder.appendingPathComponent("data").path }

    /// A path for a device's file.
    nonisolated func file(_ name: String) -> String {
        folder.appendingPathComponent(name + ".sqlite").path
    }

    /// A device over a transport of its own, or the one given.
    func device(
        _ name: String, transport: (any Transport)? = nil,
        _ configure: (inout ClientOptions) -> Void = { _ in }
    ) async throws -> MartletClient {
        var options = ClientOptions()
        configure(&options)
        return try await MartletClient.open(
            path: file(name), schema: schema, transport: try transport ?? self.transport(),
            options: options)
    }
}
