import Foundation
import Martlet
import MartletServer

/// A server in this process, on a free port and over a folder of its own, with two data sets.
final class LiveServer: Sendable {
    static let schema = """
        CREATE TABLE marks (
            id INTEGER PRIMARY KEY, writer INTEGER NOT NULL, number INTEGER NOT NULL,
            UNIQUE (writer, number)
        );
        CREATE TABLE counters (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
        """
    static let league = "league-token"
    static let club = "club-token"

    private let server: MartletServer
    private let folder: URL
    private let address: URL

    init() async throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-concurrency-\(UUID().uuidString)")
        var configuration = ServerConfiguration(
            dataDirectory: folder.path, schema: Self.schema)
        configuration.tokens = [
            try FixedToken(dataSet: "league", token: Self.league),
            try FixedToken(dataSet: "club", token: Self.club),
        ]
        configuration.log = .silent
        server = MartletServer(configuration)
        let port = try await server.start()
        guard let address = URL(string: "http://127.0.0.1:\(port)") else {
            throw WireDevice.Unexpected("The server's port makes no address.")
        }
        self.address = address
    }

    /// A device on a connection of its own.
    func device(_ name: String, token: String = league) throws -> WireDevice {
        WireDevice(name, transport: try URLSessionTransport(server: address, token: token))
    }

    func stop() async {
        await server.stop()
        try? FileManager.default.removeItem(at: folder)
    }
}
