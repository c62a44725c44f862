import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import Synchronization
import Testing

@testable import MartletDemo

@Suite("The demo's live figures", .timeLimit(.minutes(5)))
struct LiveMeterTests {
    private static func answer(_ revision: Revision, own: String?) throws -> [UInt8] {
        var set = ChangeSet()
        set.identifier = own
        set.conflict = own == nil ? nil : false
        set.revision = revision
        return try SyncCoder.encode(SyncAnswer(maxRevision: revision, changeSets: [set]))
    }

    @Test("count each commit on each device but its author's, from its first sending")
    func figures() throws {
        let meter = LiveMeter()
        let start = ContinuousClock.now
        func at(_ milliseconds: Int) -> ContinuousClock.Instant {
            start + .milliseconds(milliseconds)
        }
        // Before the stage nothing counts.
        meter.answered(try Self.answer(1, own: "a"), sent: at(0), author: 1)
        meter.reached(1, device: 2, at: at(0))
        meter.setOn(true)
        meter.answered(try Self.answer(2, own: "b"), sent: at(100), author: 1)
        // Repeated because the answer was lost: nothing new.
        meter.answered(try Self.answer(2, own: "b"), sent: at(900), author: 1)
        // Another's change says nothing of when it was made.
        meter.answered(try Self.answer(3, own: nil), sent: at(100), author: 1)
        #expect(meter.newest == 2)
        meter.reached(1, device: 2, at: at(150))
        meter.reached(4, device: 2, at: at(300))
        meter.reached(2, device: 3, at: at(1_200))
        let figures = meter.figures(devices: [1, 2, 3, 4], end: at(2_100))
        #expect(figures.changes == 1)
        #expect(figures.sights == 3)
        #expect(figures.median == .milliseconds(1_100))
        #expect(figures.worst == .milliseconds(2_000))
        #expect(figures.withinSecond == 1.0 / 3)
    }

    @Test("of a thousand times have the right percentiles, and of none are good")
    func percentiles() {
        let figures = LiveFigures((1...1_000).map { .milliseconds($0 * 2) }, changes: 10)
        #expect(figures.median == .milliseconds(1_002))
        #expect(figures.percentile99 == .milliseconds(1_982))
        #expect(figures.worst == .milliseconds(2_000))
        #expect(figures.withinSecond == 0.5)
        #expect(LiveFigures([], changes: 0).withinSecond == 1)
    }

    /// A server that says something again and again.
    private struct Chatter: LiveTransport, SnapshotSource {
        let handed = Handed()

        final class Handed: Sendable {
            let count = Mutex(0)
        }

        func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
            TransportAnswer(status: 200, body: [])
        }

        func manifest(client: String?) async throws(TransportFailure) -> SnapshotManifest? { nil }

        func open(
            _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
        ) async throws(TransportFailure) -> SnapshotBytes {
            SnapshotBytes(offset: 0, tag: nil) { () async throws(TransportFailure) in nil }
        }

        func deltas(
            _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
        ) async throws(TransportFailure) {
            await receive(.opened)
            while !Task.isCancelled {
                handed.count.withLock { $0 += 1 }
                await receive(.batch([1]))
                // Whoever cuts this needs a thread to do it on.
                await Task.yield()
            }
            throw TransportFailure(message: "cancelled")
        }
    }

    @Test("the network cuts live connections now and then, and what it cuts does not come through")
    func cutsOfLiveConnections() async throws {
        let chatter = Chatter()
        let faults = NetworkFaults(seed: 1, lostAnswers: 0, lostRequests: 0, cutStreams: 10)
        let transport = LossyTransport(
            base: chatter, faults: faults, meter: LiveMeter(), device: 1)
        let came = Mutex(0)
        for _ in 1...20 {
            let failure = await #expect(throws: TransportFailure.self) {
                try await transport.deltas(DeltaCursor(since: 0)) { event in
                    if case .batch = event { came.withLock { $0 += 1 } }
                }
            }
            #expect(failure?.message.contains("cut") == true)
        }
        #expect(faults.counts.streamsCut == 20)
        // About a hundred before each cut.
        #expect((400...8_000).contains(came.withLock(\.self)))
        #expect(came.withLock(\.self) < chatter.handed.count.withLock(\.self))
    }
}
