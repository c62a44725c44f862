internal import Martlet
internal import MartletDevice
internal import SQLiteFaults

/// What SQLite may do for something that came, in steps of its machine: a simulated world fails when it
/// does more.
///
/// The bounds are some times what was counted in a hundred thousand steps of simulated worlds. They are
/// there for what one message, of a member or of a stranger, can set off.
struct WorkAllowance {
    /// Steps whatever comes: the work of an empty exchange, and of looking around.
    let base: Int
    /// Steps for each byte of what came and of what was made of it.
    let perByte: Int
    /// Steps for each set that waits or is parked.
    let perSet: Int

    /// For one batch of a server: its requests and answers, as they travel.
    static let server = WorkAllowance(base: 15_000, perByte: 15, perSet: 0)
    /// The same on tables whose references have no index: SQLite looks through a table, of some hundred rows here, for
    /// each row that is deleted.
    static let serverWithoutIndexes = WorkAllowance(base: 15_000, perByte: 150, perSet: 0)
    /// For one event of a device: an answer, or a batch of the stream.
    static let device = WorkAllowance(base: 50_000, perByte: 50, perSet: 1_500)
    /// The same on tables whose references have no index: each deleted row, and each new key, costs a look through a table.
    static let deviceWithoutIndexes = WorkAllowance(base: 50_000, perByte: 500, perSet: 15_000)

    /// Returns what to say of too much work; nil if it is within the bound.
    /// - Parameter sets: How many sets there are, which is asked only if the bytes do not explain the work.
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
    /// - Returns: What the device wants done, and what to say if it took too much work for what came.
    func handle(
        _ event: DeviceNode.Event, now: Int64
    ) -> (actions: [DeviceNode.Action], excess: String?) {
        guard let node else { return ([], nil) }
        switch event {
        case .answered(_, _, let body, _): received = body.count
        case .streamed(_, let batch): received = batch.count
        case .snapshotFetched, .partFetched: received = 1 << 20
        default: break
        }
        let before = disk.work
        let actions = node.handle(event, now: now)
        guard !disk.isDown else { return (actions, nil) }
        let excess = allowance.excess(disk.work.since(before), bytes: received) {
            // A disk that fails says nothing of the sets, and nothing is judged.
            (try? sets(in: node.store)) ?? 1_000_000
        }
        return (actions, excess)
    }

    private func sets(in store: DeviceStore) throws -> Int {
        try store.outboxCount + store.parkedCount + store.withheldCount
    }
}
