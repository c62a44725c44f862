import Martlet
import MartletDevice
import MartletModel

/// Looks for every save in the server's log and among the parked sets, and compares the devices'
/// files with the server's.
struct TeamAudit {
    let team: DemoTeam
    let backEnd: any DemoBackEnd
    /// The token that sees everything.
    let token: String
    /// The files of devices without saves, which are compared as well.
    var watchers: [String] = []
    let progress: @Sendable (_ done: Int, _ total: Int, _ detail: String) -> Void

    /// - Returns: The account, and the figures of the coaches' views; nil if there are none.
    /// - Throws: `DemoError` and other errors if something cannot be read.
    func run() async throws -> (Account, ViewFigures?) {
        var account = Account()
        progress(0, team.devices.count, "reading the log")
        let log = try await LogAudit(
            try URLSessionTransport(server: backEnd.address(of: 0), token: token),
            lives: Set(OrganisationRules.types))
        account.types = team.schema.types.count
        account.changeSets = Int(log.revision)
        account.gaps = log.gaps
        for device in team.devices {
            try await find(device, log, &account)
        }
        find(backEnd.others, log, &account)
        let comparison = ReplicaComparison(
            schema: team.schema, serverPath: try await backEnd.tables(team.schema))
        account.records = try comparison.recordCount()
        let paths = team.paths + watchers
        account.replicas = paths.count
        for (index, path) in paths.enumerated() {
            let coach = index < team.devices.count ? team.devices[index].coach : nil
            let differences = try comparison.differences(
                path, within: coach.map { OrganisationRules.conditions(of: $0) } ?? [:])
            if differences.isEmpty { account.equalReplicas += 1 }
            account.findings += differences.prefix(3).map { "device \(index + 1): \($0)" }
            progress(index + 1, paths.count, "replicas compared")
        }
        let views = try await ViewAudit(team: team, comparison: comparison, log: log)
            .figures(findings: &account.findings)
        return (account, views)
    }

    /// Finds each transaction of other programs in the log.
    private func find(_ others: OtherMarks, _ log: LogAudit, _ account: inout Account) {
        account.otherTransactions = others.confirmed.count
        for mark in others.confirmed where log.entries[mark] == nil {
            account.lost += 1
            account.findings.append("\(mark) was committed with SQL and is not in the log")
        }
        for mark in others.confirmed + others.unknown where log.entries[mark, default: 0] > 1 {
            account.doubled += 1
            account.findings.append("\(mark) is in \(log.entries[mark, default: 0]) log entries")
        }
    }

    /// Finds each save of one device in the log or among the parked sets.
    private func find(
        _ device: DemoDevice, _ log: LogAudit, _ account: inout Account
    ) async throws {
        let parked = try await device.client.parked()
        var parkedMarks: [String: Int] = [:]
        for set in parked {
            for mark in Mark.all(in: set) { parkedMarks[mark, default: 0] += 1 }
        }
        let marks = try await device.marks()
        for mark in marks {
            let count = log.entries[mark, default: 0] + parkedMarks[mark, default: 0]
            if count == 0 { account.lost += 1 }
            if count > 1 { account.doubled += 1 }
            if count != 1, account.findings.count < 20 {
                account.findings.append(
                    "\(mark) is in \(log.entries[mark, default: 0]) log entries and"
                        + " \(parkedMarks[mark, default: 0]) parked sets")
            }
        }
        account.saves += marks.count
        account.kept += parked.count
        let receipts = try await device.client.receipts(limit: 1_000_000)
        account.conflicts += receipts.count { $0.outcome == .refused }
    }
}
