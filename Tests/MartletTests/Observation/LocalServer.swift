import Foundation
import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServerCore
import SmallWorlds

@testable import Martlet

/// A server in the test's own process, reached without a network.
actor LocalServer: Transport {
    static let script = DeviceFixture.script

    private let folder: URL
    private let node: DataSetNode
    private var now: Int64 = 1_000

    init(script: String = LocalServer.script) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-server-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        node = try DataSetNode(
            store: EmbeddedStore(
                path: folder.appendingPathComponent("data.sqlite").path, script: script,
                identity: "0123456789abcdef0123456789abcdef", now: 1_000))
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        now += 1
        do throws(WireFault) {
            let admitted = AdmittedRequest(
                principal: Principal(name: "tablet", user: "ada"),
                request: try SyncCoder.decodeRequest(body), source: body, acceptsGzip: false)
            switch node.process([admitted], now: now)[0] {
            case .success(let answer): return TransportAnswer(status: 200, body: answer.body)
            case .failure(let problem):
                return TransportAnswer(status: problem.status, body: SyncCoder.encode(problem))
            }
        } catch {
            throw TransportFailure(message: error.message)
        }
    }
}
