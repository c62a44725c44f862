internal import Martlet
internal import MartletDevice
internal import SQLiteFaults

/// The maximum work of SQLite for one event, in steps of its virtual machine. A simulated world
/// fails if SQLite does more.
///
/// The bounds are several times the work that was counted in a hundred thousand steps of simulated
/// worlds. They limit the work that one message of a member or a stranger can cause.
struct WorkAllowance {
    /// The steps for any event: the work of an empty exchange and of the checks.
    let base: Int
    /// The steps for each byte of the event and of its result.
    let perByte: Int
    /// The steps for each waiting or parked set.
    let perSet: Int

    /// The allowance for one batch of a server. The bytes are those of its requests and answers as
    /// they are sent.
    static let server = WorkAllowance(base: 15_000, perByte: 15, perSet: 0)
    /// The same with policies: views are computed from all records of a type.
    static let serverWithPolicies = WorkAllowance(base: 1_000_000, perByte: 150, perSet: 0)
    /// The same on tables whose references have no index. For each deleted row, SQLite scans a
    /// table, which has some hundred rows here.
    static let serverWithoutIndexes = WorkAllowance(base: 15_000, perByte: 150, perSet: 0)
    /// The allowance for one event of a device: an answer, or a batch of the stream.
    static let device = WorkAllowance(base: 50_000, perByte: 50, perSet: 1_500)
    /// The same on tables whose references have no index. Each deleted row, and each new key, costs
    /// a scan of a table.
    static let deviceWithoutIndexes = WorkAllowance(base: 50_000, perByte: 500, perSet: 15_000)

    /// Returns a sentence about too much work; nil if it is within the bound.
    /// - Parameter sets: Returns the number of sets. It is called only if the bytes do not explain
    ///   the work.
    func excess(_ work: DiskWork, bytes: Int, sets: () -> Int = { 0 }) -> String? {
        var most = base + perByte * bytes
        guard work.steps > most else { return nil }
        most += perSet * sets()
        guard work.steps > most else { return nil }
        return "SQLite took \(work.steps) steps for \(bytes) bytes; at most \(most) are allowed"
    }
}

extension DeviceMachine {
    /// Handles an event.
    /// - Returns: The device's actions, and a sentence if the event took too much work.
    func handle(
        _ event: DeviceNode.Event, now: Int64
    ) -> (actions: [DeviceNode.Action], excess: String?) {
        guard let node else { return ([], nil) }
        switch event {
        case .answered(_, _, let body, _): received = (isStaging ? received : 0) + body.count
        case .streamed(_, let batch): received = batch.count
        case .snapshotFetched, .partFetched: received = 1 << 20
        default: break
        }
        let before = disk.work
        let actions = node.handle(event, now: now)
        let hasApplied = actions.contains { if case .notify(.applied) = $0 { true } else { false } }
        if hasApplied { isStaging = false } else if case .answered = event { isStaging = true }
        guard !disk.isDown else { return (actions, nil) }
        let excess = allowance.excess(disk.work.since(before), bytes: received) {
            // If the disk fails, the number of sets is unknown, and the work is not judged.
            (try? sets(in: node.store)) ?? 1_000_000
        }
        return (actions, excess)
    }

    private func sets(in store: DeviceStore) throws -> Int {
        try store.outboxCount + store.parkedCount + store.withheldCount
    }
}
