import Foundation
import MartletModel
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

    /// Writes 5 MiB in five change sets.
    private static func writeMuch(to live: LiveServer) async throws {
        let name = String(repeating: "n", count: 1 << 20)
        for number in 1...5 {
            let answer = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],
                "update":[],"delete":[],"attributes":{"-1":{"name":"\(name)\(number)"}}}}]}
                """)
            #expect(answer.status == 200)
        }
    }

    /// The revision of the newest snapshot; 0 where there is none.
    private static func newest(_ live: LiveServer) async throws -> Int {
        try await live.request("GET", "/snapshot", headers: ["Authorization: Bearer secret"])
            .member("revision") ?? 0
    }

    @Test("are made of much data too, however few change sets it came in")
    func bytesMakeSnapshots() async throws {
        let live = try await LiveServer()
        try await Self.write(1...1, to: live)
        try await Self.writeMuch(to: live)
        try await waitUntil("there is a snapshot") { try await Self.newest(live) >= 5 }
        await live.stop()
        // This holds after a restart as well, and a snapshot counts the bytes that it has.
        let again = try await LiveServer(folder: live.folder)
        try await waitUntil("it is taken up") { try await Self.newest(again) >= 5 }
        let metrics = try await again.request("GET", "/metrics").body
        #expect(metrics.contains("martlet_snapshots_made_total 0\n"))
        await again.stop()
    }

    @Test("are made at the start if much data has come since the newest, in few change sets too")
    func behindNewestSnapshot() async throws {
        let first = try await LiveServer { $0.snapshotEvery = 1 }
        try await Self.write(1...1, to: first)
        try await waitUntil("there is a snapshot") { try await Self.newest(first) == 1 }
        await first.stop()
        let files = FileManager.default
        let (snapshots, copies) = (first.folder.path + "/snapshots", TemporaryFolder())
        try files.copyItem(atPath: snapshots, toPath: copies.path + "/old")
        let second = try await LiveServer(folder: first.folder)
        try await Self.writeMuch(to: second)
        try await waitUntil("there is another") { try await Self.newest(second) > 1 }
        await second.stop()
        // As if that server had ended before it made one.
        try files.removeItem(atPath: snapshots)
        try files.copyItem(atPath: copies.path + "/old", toPath: snapshots)
        let third = try await LiveServer(folder: first.folder)
        try await waitUntil("it is made at the start") { try await Self.newest(third) == 6 }
        await third.stop()
    }

    @Test("are followed by a rest of nine times what they took, and of at most ten minutes")
    func rest() {
        #expect(SnapshotService.rest(afterMilliseconds: 1_000) == .seconds(9))
        #expect(SnapshotService.rest(afterMilliseconds: 90_000) == .seconds(600))
        // The clock was set back.
        #expect(SnapshotService.rest(afterMilliseconds: -5_000) == .milliseconds(9))
        #expect(SnapshotService.rest(afterMilliseconds: .max) == .seconds(600))
    }

    @Test("whose files were removed are forgotten, and made anew")
    func removed() async throws {
        let live = try await LiveServer { $0.snapshotEvery = 2 }
        try await Self.write(1...2, to: live)
        try await waitUntil("there is a snapshot") { try await Self.newest(live) == 2 }
        try FileManager.default.removeItem(atPath: live.folder.path + "/snapshots")
        #expect(try await Self.newest(live) == 0, "no device is sent for what is gone")
        #expect(live.logLines.contains { $0.contains("Its files are gone") })
        try await waitUntil("there is another") { try await Self.newest(live) == 2 }
        await live.stop()
    }

    @Test("are tried again after longer and longer pauses, though nothing more is written")
    func tried() async throws {
        let pauses = Pauses()
        let live = try await LiveServer { configuration in
            configuration.snapshotEvery = 2
            configuration.later = { pauses.add($0, $1) }
        }
        // A file where the folder should be: what fails is found and gone again in an instant.
        let folder = live.folder.path + "/snapshots/league/everybody"
        try await waitUntil("the folder of the snapshots is there") {
            FileManager.default.fileExists(atPath: folder)
        }
        try FileManager.default.removeItem(atPath: folder)
        try Data().write(to: URL(fileURLWithPath: folder))
        try await Self.write(1...2, to: live)
        try await waitUntil("the first try has failed") { pauses.asked.count == 1 }
        // While it fails, only time brings the next try.
        try await Self.write(3...8, to: live)
        for tries in 2...8 {
            pauses.end()
            try await waitUntil("try \(tries) has failed") { pauses.asked.count == tries }
        }
        #expect(pauses.asked == [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) })
        try await live.untilLogged("\"tries\":8,\"nextInSeconds\":60")
        #expect(try await Self.newest(live) == 0)

        try FileManager.default.removeItem(atPath: folder)
        pauses.end()
        try await waitUntil("there is a snapshot") { try await Self.newest(live) == 8 }
        try await live.untilMetrics("martlet_snapshots_failed_total 8")
        // Revisions count again when the service has rested.
        try await waitUntil("it rests") { pauses.asked.count == 9 }
        try await Self.write(9...12, to: live)
        #expect(try await Self.newest(live) == 8)
        pauses.end()
        try await waitUntil("there is the next") { try await Self.newest(live) == 12 }
        try await waitUntil("it rests again") { pauses.asked.count == 10 }
        await live.stop()
    }
}
