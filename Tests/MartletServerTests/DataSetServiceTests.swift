import MartletModel
import MartletProtocol
import MartletServerCore
import Testing
import Waiting

@testable import MartletServer

@Suite("A data set's service", .timeLimit(.minutes(5)))
struct DataSetServiceTests {
    /// Refers weakly to the parts that all others refer to.
    private final class Held {
        weak var snapshots: SnapshotService?
        weak var signal: RevisionSignal?
        var isFreed: Bool { snapshots == nil && signal == nil }
    }

    @Test("is freed with all its parts once it has stopped")
    func freed() async throws {
        let (folder, held) = (TemporaryFolder(), Held())
        do {
            let service = try await HeldService.make(folder, HeldService.Gate())
            (held.snapshots, held.signal) = (service.snapshots, service.signal)
            var request = SyncRequest(maxRevision: 0)
            request.clientID = "tablet"
            request.wantsRows = true
            let admitted = AdmittedRequest(
                principal: Principal(name: "tablet", user: "ada"), request: request, source: [])
            _ = try await service.answer(admitted, AnswerClaim(of: "ada")).get()
            #expect(!held.isFreed)
            await service.stop()
        }
        try await waitUntil("nothing holds its parts") { held.isFreed }
    }
}
