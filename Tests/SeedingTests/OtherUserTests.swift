import Foundation
import MartletModel
import MartletProtocol
import SystemKit
import Testing

@testable import Martlet

@Suite("A download that another user continues")
struct OtherUserTests {
    /// The reason why the server does not send the first user's file to the second one.
    enum Refusal: CaseIterable {
        /// The name under which the download began is the first user's.
        case name
        /// The second user sees other records, so that there is no such file for him.
        case view
    }

    @Test(
        "is dropped whenever it was stopped: the second user gets his own records, and nothing else",
        arguments: Refusal.allCases)
    func anyStep(refusal: Refusal) async throws {
        let first = try SeedingFixture()
        let second = try SeedingFixture { $0.parts[0].hash = String(repeating: "a", count: 64) }
        let own = [second.manifest.parts[0].hash: second.packed.values.first ?? []]
        let expected = try second.expected()
        var step = 1
        var stopped = 0
        while true {
            let countdown = Countdown(step, isLasting: true)
            let source = first.source(cut: [5_000])
            _ = try? await first.seed(from: source, faults: countdown.faults)
            // A finished file is a device of the first user's.
            if !FileManager.default.fileExists(atPath: first.device) {
                switch refusal {
                case .name:
                    source.replace(second.manifest, own.merging(first.packed) { own, _ in own })
                    source.refuse(source.clients.last ?? nil)
                case .view: source.replace(second.manifest, own)
                }
                try await first.seed(from: source)
                #expect(
                    try SeedingFixture.content(first.device) == expected, "stopped at step \(step)")
                #expect(try first.left() == ["device.sqlite"], "stopped at step \(step)")
                stopped += 1
            }
            try first.removeDevice()
            if !countdown.hasFailed { break }
            step += 1
        }
        #expect(stopped > 30, "steps were counted")
    }

    @Test("is dropped if only the name was kept, or the second user's view has no snapshot")
    func nothingForTheSecond() async throws {
        let fixture = try SeedingFixture()
        let source = fixture.source(cut: [5_000, -1, -1, -1])
        _ = try? await fixture.seed(from: source)
        let first = try #require(source.clients.last ?? nil)
        source.refuse(first)
        source.replace(nil, fixture.packed)
        let second = try #require(try await fixture.seed(from: source))
        #expect(second != first && source.clients.last == second)
        #expect(try fixture.left() == [])
        // A process that was stopped before it stored the manifest leaves the name. It stays its user's.
        try Data(first.utf8).write(to: URL(fileURLWithPath: fixture.device + "-seed.client"))
        let third = try #require(try await fixture.seed(from: source))
        #expect(third != first)
        #expect(try fixture.left() == [])
        source.refuse(nil)
        try Data(first.utf8).write(to: URL(fileURLWithPath: fixture.device + "-seed.client"))
        #expect(try await fixture.seed(from: source) == first)
        #expect(try fixture.left() == [])
    }
}
