import Foundation
import MartletProtocol
import Synchronization
import Testing
import Waiting

@testable import MartletServer

@Suite("Snapshots that could not be made")
struct SnapshotRetryTests {
    /// What a server wants to do after a while: the test says when that is over.
    private final class Pauses: Sendable {
        private struct State {
            var asked: [Duration] = []
            var work: (@Sendable () -> Void)?
        }

        private let state = Mutex(State())

        var asked: [Duration] { state.withLock { $0.asked } }

        func add(_ pause: Duration, _ work: @escaping @Sendable () -> Void) {
            state.withLock { state in
                state.asked.append(pause)
                state.work = work
            }
        }

        /// Ends the pause asked for last.
        func end() {
            state.withLock { $0.work.take() }?()
        }
    }

    private static func write(_ numbers: ClosedRange<Int>, to live: LiveServer) async throws {
        for number in numbers {
            let answer = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],
                "update":[],"delete":[],"attributes":{"-1":{"name":"Team \(number)"}}}}]}
                """)
            #expect(answer.status == 200)
        }
    }

    /// The revision of the newest snapshot; 0 where there is none.
    private static func newest(_ live: LiveServer) async throws -> Int {
        try await live.request("GET", "/snapshot", headers: ["Authorization: Bearer secret"])
            .member("revision") ?? 0
    }

    @Test("are tried again after longer and longer pauses, though nothing more is written")
    func tried() async throws {
        let pauses = Pauses()
        let live = try await LiveServer { configuration in
            configuration.snapshotEvery = 2
            configuration.later = { pauses.add($0, $1) }
        }
        // A file where the folder should be: what fails is found and gone again in an instant.
        let place = live.folder.path + "/snapshots/league/everybody"
        try await waitUntil("the folder of the snapshots is there") {
            FileManager.default.fileExists(atPath: place)
        }
        try FileManager.default.removeItem(atPath: place)
        try Data().write(to: URL(fileURLWithPath: place))
        try await Self.write(1...2, to: live)
        try await waitUntil("the first try has failed") { pauses.asked.count == 1 }
        // While it fails, only time brings the next try.
        try await Self.write(3...8, to: live)
        for tries in 2...8 {
            pauses.end()
            try await waitUntil("try \(tries) has failed") { pauses.asked.count == tries }
        }
        #expect(pauses.asked == [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) })
        #expect(live.logLines.contains { $0.contains("\"tries\":8,\"nextInSeconds\":60") })
        #expect(try await Self.newest(live) == 0)

        try FileManager.default.removeItem(atPath: place)
        pauses.end()
        try await waitUntil("there is a snapshot") { try await Self.newest(live) == 8 }
        let metrics = try await live.request("GET", "/metrics").body
        #expect(metrics.contains("martlet_snapshots_failed_total 8\n"))
        // Revisions count again.
        try await Self.write(9...10, to: live)
        try await waitUntil("there is the next") { try await Self.newest(live) == 10 }
        #expect(pauses.asked.count == 8)
        await live.stop()
    }
}
