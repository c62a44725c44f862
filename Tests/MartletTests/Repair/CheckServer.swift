import Foundation
import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SmallWorlds

@testable import Martlet

/// A server in the test's own process that compares, with a reader beside its writer.
actor CheckServer: Transport {
    private let folder: URL
    private let node: DataSetNode
    private let reader: LogReader
    private var now: Int64 = 1_000
    /// What others write before each comparison is made: the content of a change set.
    private var disturbances: [String] = []
    private(set) var comparisons = 0
    /// Whether `check` is passed over, as an older server does.
    private var isOld = false

    init(script: String = DeviceFixture.script) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-server-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let store = try EmbeddedStore(
            path: folder.appendingPathComponent("data.sqlite").path, script: script,
            identity: "0123456789abcdef0123456789abcdef", now: 1_000)
        node = try DataSetNode(store: store)
        reader = LogReader(node: node, store: store)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    func disturb(by sets: [String]) { disturbances = sets }

    func growOld() { isOld = true }

    /// What another device sends, from the newest revision, which `HEAD` stands for.
    func send(_ set: String) throws {
        let set = set.replacing("HEAD", with: String(node.head.revision))
        let body = #"{"maxRevision":\#(node.head.revision),"changeSets":[\#(set)]}"#
        let answer = try SyncCoder.decodeAnswer(process(Array(body.utf8)).body)
        guard answer.changeSets.last?.conflict != true else { throw FixtureError.changed }
    }

    /// One value of the server's file.
    func text(_ sql: String) throws -> String? {
        try Connection(path: folder.appendingPathComponent("data.sqlite").path).text(sql)
    }

    /// What another program does to the server's file.
    func tamper(_ sql: String) throws {
        try Connection(path: folder.appendingPathComponent("data.sqlite").path).execute(sql)
    }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        do {
            return try process(body)
        } catch {
            throw TransportFailure(message: "\(error)")
        }
    }

    private func process(_ body: [UInt8]) throws -> TransportAnswer {
        now += 1
        var request = try SyncCoder.decodeRequest(body)
        if isOld { request.check = nil }
        let admitted = AdmittedRequest(
            principal: Principal(name: "tablet", user: "ada"), request: request, source: body)
        if request.check != nil {
            comparisons += 1
            if !disturbances.isEmpty { try send(disturbances.removeFirst()) }
            switch reader.answer(to: admitted) {
            case .answer(let answer): return TransportAnswer(status: 200, body: answer.body)
            case .problem(let problem): return Self.answer(problem)
            case .needsNode, .needsLog: break
            }
        }
        switch node.process([admitted], now: now)[0] {
        case .success(let answer): return TransportAnswer(status: 200, body: answer.body)
        case .failure(let problem): return Self.answer(problem)
        }
    }

    private static func answer(_ problem: Problem) -> TransportAnswer {
        TransportAnswer(status: problem.status, body: SyncCoder.encode(problem))
    }
}
