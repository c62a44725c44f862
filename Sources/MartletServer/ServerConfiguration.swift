internal import Dispatch
internal import Foundation
package import HTTPKit

/// The settings with which a server is started.
///
/// ```swift
/// var configuration = ServerConfiguration(dataDirectory: "/srv/martlet", schema: script)
/// configuration.port = 8080
/// configuration.tokens = [try FixedToken(dataSet: "club", token: "a-long-secret")]
/// try await MartletServer.run(configuration)
/// ```
public struct ServerConfiguration: Sendable {
    /// The folder that holds all files of the server. The server creates it if it is missing.
    public var dataDirectory: String
    /// The CREATE statements that are the schema of every data set in a file. A data set in a
    /// database has the schema of its tables.
    public var schema: String
    /// The addresses of PostgreSQL databases, each with one data set
    /// (`postgresql://USER:PASSWORD@HOST:PORT/DATABASE`). If there is one, no data set is kept in
    /// files.
    public var postgres: [String] = []
    /// The address of a Redis server (`redis://HOST:PORT`), or nil for none. It holds recent change
    /// sets, and the processes of one database tell each other of new ones through it.
    public var redis: String?
    /// The address on which the server listens.
    public var host = "127.0.0.1"
    /// The TCP port; 0 takes a free port.
    public var port = 0
    /// Tokens that are kept in memory only, in addition to those of the data directory.
    public var tokens: [FixedToken] = []
    /// The settings for an issuer's tokens (JWT), which are accepted in addition to the server's
    /// own; nil accepts none.
    public var signedTokens: SignedTokenSettings?
    /// The bytes of a rules file (`RulesFile`); nil allows everyone every operation.
    public var rules: [UInt8]?
    /// The bytes of a seeding file (`SeedingFile`); nil makes snapshots with one part.
    public var seeding: [UInt8]?
    /// The number of revisions after which a new snapshot of a data set is made; at least 1.
    public var snapshotEvery: Int64 = 10_000
    /// The limits of snapshots for people who see a part of a data set.
    public var viewSnapshots = ViewSnapshotLimits()
    /// The approximate number of newest change sets of a data set that are kept whole; at least 1,
    /// or nil for all. The server empties older ones, and a device that is further behind gets the
    /// changed rows instead.
    public var keepRevisions: Int64? = 100_000
    /// The approximate memory for the newest change sets of a data set, in bytes; at least 1. The
    /// server reads older ones from the database.
    public var cacheBytes = 64 << 20
    /// The time after which an unused data set in a file is closed until its next use; nil closes
    /// none. Streams and waiting polls use their data set.
    public var closeAfter: Duration? = .seconds(300)
    /// The most data sets in files that are open at a time. File descriptors may allow fewer.
    package var mostOpen = Int.max
    /// The certificate, a PEM file. Give both files of TLS, or neither.
    public var tlsCertificatePath: String?
    /// The private key of the certificate, a PEM file.
    public var tlsKeyPath: String?
    /// The origins of pages that may open a WebSocket, such as `https://app.example.org`, in
    /// addition to the server's own host.
    public var allowedOrigins: [String] = []
    /// The log of the server.
    public var log = ServerLog.standardError()
    /// The clock. It returns milliseconds since 1970.
    public var now: @Sendable () -> Int64 = {
        Int64((Date.now.timeIntervalSince1970 * 1_000).rounded())
    }
    /// Schedules the server's retries after a failure.
    package var later: Scheduler = { pause, work in
        let (seconds, attoseconds) = pause.components
        DispatchQueue.global(qos: .utility).asyncAfter(
            deadline: .now() + Double(seconds) + Double(attoseconds) / 1e18, execute: work)
    }
    /// The interval at which the server checks whether the TLS files have changed.
    package var certificateEvery = Duration.seconds(5)
    /// The time that accepted requests may take after the server is asked to stop.
    public var stopGrace = Duration.seconds(20)
    /// The time in seconds for which a change set waits for the one that it depends on.
    package var dependencyWaitSeconds = 2
    /// The time in which the first message of a WebSocket without a token must arrive.
    package var tokenDeadline = Duration.seconds(10)
    /// The interval at which a listener gets a sign of life and the server checks its token again.
    package var heartbeat = Duration.seconds(15)
    /// The limits of the HTTP server. Its host, port and TLS files come from the properties above.
    package var http = HTTPServerOptions()

    /// Serves data sets in files.
    ///
    /// - Parameters:
    ///   - dataDirectory: The path of the folder that holds all files of the server.
    ///   - schema: The text of a schema file.
    public init(dataDirectory: String, schema: String) {
        self.dataDirectory = dataDirectory
        self.schema = schema
        // All clients of a proxy on the same machine have its one address.
        http.addressesWithoutLimit = ["127.0.0.1", "::1"]
    }

    /// Serves data sets in PostgreSQL databases.
    ///
    /// - Parameters:
    ///   - dataDirectory: The path of the folder that holds all files of the server.
    ///   - addresses: One address for each database.
    ///   - redis: The address of a Redis server; nil for none.
    public init(dataDirectory: String, postgres addresses: [String], redis: String? = nil) {
        self.init(dataDirectory: dataDirectory, schema: "")
        postgres = addresses
        self.redis = redis
    }

    /// Returns the options of the HTTP server.
    ///
    /// - Throws: `ServerFailure` if one of the TLS files is given without the other.
    func httpOptions() throws(ServerFailure) -> HTTPServerOptions {
        var options = http
        options.host = host
        options.port = port
        options.webSocket.stalledCode = DeltaSocket.tooSlow
        options.webSocket.stalledReason = "You read too slowly; catch up by polling."
        switch (tlsCertificatePath, tlsKeyPath) {
        case (nil, nil): break
        case (let certificate?, let key?):
            options.tls = .init(certificatePath: certificate, keyPath: key)
        default:
            throw ServerFailure("TLS needs both files: --tls-cert and --tls-key.")
        }
        return options
    }
}
