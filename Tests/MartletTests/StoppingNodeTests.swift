import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("A device that is stopped")
struct StoppingNodeTests {
    @Test("leaves the rest of an answer, and asks for it again when it goes on")
    func betweenSlices() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 1 }
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let sets = (1...3).map { revision in
            ChangeSet.entry(
                revision, .created("teams", 10 + revision, at: revision, ["name": "T"]))
        }
        _ = try world.answer(first.exchange, 3, more: true, sets)
        #expect(try world.device.store.revision == 1)
        #expect(world.node.stop().isEmpty)
        #expect(world.handle(.applyNext(exchange: first.exchange)).isEmpty)
        #expect(try world.device.store.revision == 1)
        #expect(world.node.isIdle)

        let again = try #require(try world.handle(.wake(isUrgent: true)).sent)
        #expect(again.request.maxRevision == 1)
        _ = try world.answer(again.exchange, 3, Array(sets[1...]))
        _ = world.handle(.applyNext(exchange: again.exchange))
        #expect(try world.device.store.revision == 3)
    }

    @Test("takes no notice of the answer that was on its way, and lets other processes exchange")
    func betweenAnswers() throws {
        let world = NodeFixture(try DeviceFixture())
        try world.device.write { try $0.insert("teams", ["name": "Mine"]) }
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = world.node.stop()
        let told = try world.answer(
            first.exchange, 1,
            [.entry(1, .created("teams", 11, at: 1, ["name": "T"]))])
        #expect(told.isEmpty)
        #expect(try world.device.store.revision == 0)
        // Another process may exchange at once.
        #expect(try world.device.gather().changeSets.count == 1)
    }

    @Test("lets go of the stream, and of a part that is being fetched, without asking for more")
    func streamWhenStopped() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let told = NodeFixture.Told(world.node.stop())
        #expect(told.closed == stream)
        #expect(told.isLive == false)
        #expect(told.timer == nil)
        #expect(world.handle(.streamed(stream, [])).isEmpty)
    }
}
