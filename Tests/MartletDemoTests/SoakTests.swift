import Foundation
import Testing

@testable import MartletDemo

/// What a soak is judged by, on runs that are made up.
@Suite("A soak's judgement")
struct SoakTests {
    /// A value each second for ten minutes.
    private func points(_ value: (Int) -> Double) -> [(at: Double, value: Double)] {
        (0..<600).map { (Double($0), value($0)) }
    }

    @Test("a trend is what grows steadily, not what peaks")
    func trend() throws {
        let growing = try #require(Trend(points { 1_000 + Double($0) * 0.5 }))
        #expect(abs(growing.growth - 299.5) < 0.001)
        #expect(growing.start < 1_020 && growing.end > 1_280)
        // Every tenth look meets a peak.
        let peaked = try #require(Trend(points { $0.isMultiple(of: 10) ? 90_000 : 1_000 }))
        #expect(peaked.rise == 0)
        let falling = try #require(Trend(points { 1_000 - Double($0) }))
        #expect(falling.rise < 0)
        // A step that stays is no slope, and yet a rise.
        let stepped = try #require(Trend(points { $0 < 500 ? 100 : 140 }))
        #expect(stepped.growth < 1)
        #expect(stepped.rise == 40)
        #expect(Trend([(0, 1)]) == nil)
        #expect(Trend([]) == nil)
    }

    @Test("memory, descriptors and threads may rise a little, and fail where they rise more")
    func flat() throws {
        func verdict(
            _ figure: SoakFigure, _ start: Double, rise: Double, seconds: Int = 600,
            files: Double = 0
        ) throws -> SoakCheck.Verdict {
            let trend = try #require(Trend(points { start + rise * Double($0) / 599 }))
            return SoakReport.check("server", figure, trend, .seconds(seconds), files: files)
                .verdict
        }
        #expect(try verdict(.memory, 40_000, rise: 4_000) == .passed)
        #expect(try verdict(.memory, 40_000, rise: 6_000, files: 1_000) == .passed)
        #expect(try verdict(.memory, 40_000, rise: 6_200, files: 1_000) == .failed)
        #expect(try verdict(.memory, 40_000, rise: 4_000, files: -2_000) == .passed)
        #expect(try verdict(.descriptors, 100, rise: 5, files: 2_000) == .failed)
        #expect(try verdict(.memory, 40_000, rise: 4_200) == .failed)
        #expect(try verdict(.memory, 400_000, rise: 19_000) == .passed)
        #expect(try verdict(.memory, 400_000, rise: 23_000) == .failed)
        #expect(try verdict(.memory, 400_000, rise: 23_000, seconds: 60) == .untold)
        #expect(try verdict(.descriptors, 100, rise: 3.9) == .passed)
        #expect(try verdict(.descriptors, 100, rise: 5) == .failed)
        #expect(try verdict(.descriptors, 100, rise: 5, seconds: 60) == .failed)
        #expect(try verdict(.descriptors, 100, rise: 5, seconds: 59) == .untold)
        #expect(try verdict(.threads, 20, rise: 7) == .passed)
        #expect(try verdict(.threads, 20, rise: 9) == .failed)
    }

    private func part(_ count: Int, milliseconds: Int) -> SoakPart {
        SoakPart(Array(repeating: .milliseconds(milliseconds), count: count))
    }

    @Test("times are put into tenths by the moment they were due")
    func tenths() {
        let times = (-10..<110).map {
            SoakMeter.Time(at: .seconds($0), took: .milliseconds($0 < 50 ? 1 : $0))
        }
        let parts = SoakPart.tenths(times, of: .seconds(100))
        #expect(parts.map(\.count) == Array(repeating: 10, count: 10))
        #expect(parts[0].percentile99 == .milliseconds(1))
        #expect(parts[9].median == .milliseconds(95))
        #expect(parts[9].percentile99 == .milliseconds(99))
        #expect(SoakPart([]).count == 0)
    }

    @Test("the last tenth may be a fifth slower than the first, and every save must be found")
    func latency() {
        func report(_ first: Int, _ last: Int, count: Int = 200) -> SoakReport {
            var report = SoakReport()
            report.account.replicas = 1
            report.account.equalReplicas = 1
            report.saves = [part(count, milliseconds: first), part(count, milliseconds: last)]
            return report
        }
        #expect(report(100, 120).isGood)
        #expect(!report(100, 121).isGood)
        #expect(report(100, 500, count: 199).checks.first?.verdict == .untold)
        var lost = report(100, 100)
        lost.account.lost = 1
        #expect(lost.checks.map(\.verdict) == [.passed, .failed])
        #expect(!lost.isGood)
    }

    @Test("a plan keeps its pace, and as many devices are away at its end as at its beginning")
    func planOfSoak() {
        func drawn(_ seed: UInt64) -> SoakPlan {
            SoakPlan(
                seed: seed, devices: 20, warmUp: .seconds(20), length: .seconds(100), saves: 8)
        }
        let plan = drawn(7)
        #expect(plan.steps == drawn(7).steps)
        #expect(plan.steps != drawn(8).steps)
        #expect(plan.steps.map(\.at) == plan.steps.map(\.at).sorted())
        var away: Set<Int> = []
        var counts: [SoakStep.Deed: Int] = [:]
        for step in plan.steps {
            counts[step.deed, default: 0] += 1
            switch step.deed {
            case .leave: #expect(away.insert(step.device).inserted)
            case .comeBack: #expect(away.remove(step.device) != nil)
            case .sync, .reopen: #expect(!away.contains(step.device))
            case .save: #expect((2...3).contains(away.count))
            }
        }
        #expect(away.count == 2)
        let reopened = plan.steps.filter { $0.deed == .reopen }
        #expect(Set(reopened.prefix(18).map(\.device)).count == 18)
        #expect(Set(reopened.filter { $0.at < .seconds(20) }.map(\.device)).count == 20)
        // The 18 who are connected save at once, three times in the warm-up.
        let moments = Dictionary(grouping: plan.steps.filter { $0.deed == .save }, by: \.at)
        let gatherings = moments.filter { Set($0.value.map(\.device)).count >= 18 }.keys.sorted()
        #expect(gatherings == [.seconds(5), .seconds(10), .seconds(15)])
        #expect(counts == [.save: 854, .sync: 200, .leave: 21, .comeBack: 19, .reopen: 64])
    }

    @Test("the kernel tells what a process uses", .enabled(if: ProcessFigures.areKnown))
    func figures() throws {
        let own = ProcessInfo.processInfo.processIdentifier
        let before = try #require(ProcessFigures(of: own))
        #expect(before.memory > 1_000 && before.threads > 0 && before.processorSeconds > 0)
        #expect(before.descriptors > 2)
        #expect(ProcessFigures(of: -1) == nil)
        #expect((before + before).threads == 2 * before.threads)
        let child = Process()
        child.executableURL = URL(fileURLWithPath: "/bin/sleep")
        child.arguments = ["60"]
        try child.run()
        defer { child.terminate() }
        let found = ProcessFigures.descendants(of: own, named: "sleep")
        #expect(found.contains(child.processIdentifier))
        #expect(!ProcessFigures.descendants(of: 1, named: "none").contains(own))
    }
}
