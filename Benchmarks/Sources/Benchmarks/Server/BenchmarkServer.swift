import Foundation

/// A server in a process of its own, over a temporary folder, and where its log stands.
final class BenchmarkServer {
    private(set) var process: ChildProcess
    private(set) var head = LoadPlan.Head()
    let folder: URL
    private var sequences: [String: Int64] = [:]

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-benchmark-\(UUID().uuidString)")
        process = try ChildProcess([ServerRole.name, folder.path])
        let teams = LoadPlan.Request(
            client: "founder", head: head, types: Organisation.teamSet, sequence: 1)
        try advance(LoadPlan([[teams]]), by: 1)
    }

    /// Ends the process and starts another over the same folder: what it held in memory is gone.
    /// - Parameter withoutSnapshots: Whether the snapshots that it made are gone, too.
    func restart(withoutSnapshots: Bool = false) throws {
        process.stop()
        if withoutSnapshots {
            try FileManager.default.removeItem(at: folder.appendingPathComponent("snapshots"))
        }
        process = try ChildProcess([ServerRole.name, folder.path])
    }

    func stop() {
        process.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Requests of devices that are up to date: each sends `sets` change sets of `records` players.
    func pushes(devices: Int, sets: Int, records: Int) -> [[LoadPlan.Request]] {
        (0..<devices).map { device in
            let client = "device-\(device)"
            let last = sequences[client] ?? 0
            sequences[client] = last + Int64(sets)
            return (0..<sets).map { set in
                let sequence = last + Int64(set) + 1
                // Temporary ids are a device's own; so many are left for each set.
                let first = Int(sequence) * 1_000
                return LoadPlan.Request(
                    client: client, head: head,
                    types: Organisation.playerSet(
                        device: device, first: first, count: records),
                    sequence: sequence)
            }
        }
    }

    /// Sends change sets, all of which must be accepted.
    @discardableResult
    func advance(_ plan: LoadPlan, by sets: Int) throws -> LoadPlan.Outcome {
        let expected = head.revision + Int64(sets)
        let outcome = try plan.run(on: process)
        // Where an answer was cut, the newest revision came to nobody.
        let reached = try newest(after: outcome.head)
        guard reached.revision == expected else {
            throw BenchmarkFailure(
                "The log ends at revision \(reached.revision); \(expected) was expected.")
        }
        head = reached
        return outcome
    }

    private func newest(after head: LoadPlan.Head) throws -> LoadPlan.Head {
        var head = head
        while true {
            let pull = LoadPlan.Request(client: "watcher", head: head, types: nil)
            let next = try LoadPlan([[pull]]).run(on: process).head
            if next.revision == head.revision { return next }
            head = next
        }
    }
}
