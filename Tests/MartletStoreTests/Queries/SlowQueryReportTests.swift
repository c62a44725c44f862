import Foundation
import MartletStore
import Synchronization
import Testing

@Suite("Slow-query report")
struct SlowQueryReportTests {
    private func league(_ report: SlowQueryReport) async throws -> League {
        var options = DatabaseOptions()
        options.trace = report.trace
        return try await League(options)
    }

    @Test("counts runs and times by statement, values left out")
    func countsOfRuns() async throws {
        let report = SlowQueryReport()
        let league = try await league(report)
        report.reset()
        for name in ["Ada", "secret", "Bo"] {
            _ = try await league.names(League.players.name == name)
        }
        let entry = try #require(report.entries.first { $0.sql.contains("\"name\" = ?") })
        #expect(entry.runs == 3)
        #expect(entry.longest <= entry.total)
        #expect(entry.average <= entry.longest)
        #expect(report.entries.allSatisfy { !"\($0)".contains("secret") })
        #expect(report.entries.map(\.total) == report.entries.map(\.total).sorted(by: >))
    }

    @Test("shows the plan of a statement on demand")
    func planInReport() async throws {
        let report = SlowQueryReport()
        let league = try await league(report)
        _ = try await league.names(League.players.score == 5 && League.players.shirt == 1)
        let entry = try #require(report.entries.first { $0.sql.contains("\"score\" = ?") })
        let plan = try await league.pool.read { context in
            try report.plan(of: entry, in: context)
        }
        #expect(plan.first?.contains("players_shirt") == true)
    }

    @Test("keeps so many statements, those that took most")
    func boundedStatements() async throws {
        let report = SlowQueryReport(capacity: 5)
        let league = try await league(report)
        for length in 1...20 {
            try await league.pool.read { context in
                _ = try context.rows("SELECT \(length)")
            }
        }
        #expect(report.entries.count == 5)
        #expect(report.forgotten > 10)
        report.reset()
        #expect(report.entries.isEmpty)
        #expect(report.forgotten == 0)
    }

    @Test("leaves out what is fast enough")
    func threshold() async throws {
        let report = SlowQueryReport(slowerThan: .seconds(3_600))
        let league = try await league(report)
        _ = try await league.names(.always)
        #expect(report.entries.isEmpty)
    }
}
