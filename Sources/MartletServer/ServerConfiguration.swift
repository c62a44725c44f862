internal import Dispatch
internal import Foundation
package import HTTPKit

/// What a server is started with.
public struct ServerConfiguration: Sendable {
    /// The folder that holds everything the server keeps; made where it is missing.
    public var dataDirectory: String
    /// CREATE statements: the schema of every data set in a file here. Those of databases are as
    /// their tables are.
    public var schema: String
    /// Addresses of PostgreSQL databases, each with one data set
    /// (`postgresql://USER:PASSWORD@HOST:PORT/DATABASE`). Where there is one, no data set is kept
    /// in files.
    public var postgres: [String] = []
    /// The address of a Redis server (`redis://HOST:PORT`) that holds recent change sets, and
    /// through which the processes of one database tell each other of new ones; nil does without.
    public var redis: String?
    public var host = "127.0.0.1"
    /// 0 takes a free port.
    public var port = 0
    /// Tokens in memory only, beside those of the data directory.
    public var tokens: [FixedToken] = []
    /// How an issuer's tokens (JWT) are judged, beside the server's own; nil accepts none.
    public var signedTokens: SignedTokenSettings?
    /// The bytes of a rules file (`RulesFile`); nil lets everyone do everything.
    public var rules: [UInt8]?
    /// The bytes of a seeding file (`SeedingFile`); nil makes snapshots of one part.
    public var seeding: [UInt8]?
    /// A snapshot of a data set is made after so many revisions; at least 1.
    public var snapshotEvery: Int64 = 10_000
    /// How many of the newest change sets of a data set are kept whole, about; at least 1. Older
    /// ones are emptied, and a device that is further behind gets the rows that changed instead.
    /// Nil keeps all.
    public var keepRevisions: Int64? = 100_000
    /// Memory for the newest change sets of a data set, in bytes, about; at least 1. Devices that lack
    /// older ones are answered from the database.
    public var cacheBytes = 64 << 20
    /// The time after which an unused data set in a file is closed, until it is used again; nil
    /// closes none. Streams and waiting polls use their data set.
    public var closeAfter: Duration? = .seconds(300)
    /// The most data sets in files that are open at a time, if descriptors do not allow fewer.
    package var mostOpen = Int.max
    /// PEM files; both or neither.
    public var tlsCertificatePath: String?
    public var tlsKeyPath: String?
    /// Origins of pages that may open a WebSocket beside those of the server's own host, such as
    /// `https://app.example.org`.
    public var allowedOrigins: [String] = []
    /// Takes the log's lines.
    public var log = ServerLog.standardError()
    /// The clock: milliseconds since 1970.
    public var now: @Sendable () -> Int64 = {
        Int64((Date.now.timeIntervalSince1970 * 1_000).rounded())
    }
    /// What the server waits with before it tries again what failed by itself.
    package var later: Scheduler = { pause, work in
        let (seconds, attoseconds) = pause.components
        DispatchQueue.global(qos: .utility).asyncAfter(
            deadline: .now() + Double(seconds) + Double(attoseconds) / 1e18, execute: work)
    }
    /// How often the server looks whether the TLS files have changed.
    package var certificateEvery = Duration.seconds(5)
    /// How long what was accepted may take once the server is asked to stop.
    public var stopGrace = Duration.seconds(20)
    /// How long a change set waits for the one it depends on.
    package var dependencyWaitSeconds = 2
    /// How long the first message of a WebSocket without a token may take.
    package var tokenDeadline = Duration.seconds(10)
    /// How often who listens gets a sign of life, and its token is looked at.
    package var heartbeat = Duration.seconds(15)
    /// The limits of the HTTP server; host, port and TLS are taken from above.
    package var http = HTTPServerOptions()

    /// - Parameter schema: The text of a schema file.
    public init(dataDirectory: String, schema: String) {
        self.dataDirectory = dataDirectory
        self.schema = schema
        // A proxy on the same machine is one address for all its clients.
        http.addressesWithoutLimit = ["127.0.0.1", "::1"]
    }

    /// Serves data sets in PostgreSQL databases.
    /// - Parameter addresses: One for each database.
    public init(dataDirectory: String, postgres addresses: [String], redis: String? = nil) {
        self.init(dataDirectory: dataDirectory, schema: "")
        postgres = addresses
        self.redis = redis
    }

    /// - Throws: `ServerFailure` when one of the TLS files is given without the other.
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
