/// The events of a simulation, as counts.
public struct SimulationReport: Hashable, Sendable {
    /// The number of events delivered.
    public var steps = 0
    /// The number of local saves that were committed.
    public var saves = 0
    /// The number of entries of the server's log.
    public var accepted = 0
    /// The number of refused saves, which the devices have kept.
    public var refused = 0
    public var lostMessages = 0
    public var doubledMessages = 0
    public var deviceCrashes = 0
    public var serverCrashes = 0
    public var diskErrors = 0
    public var partitions = 0
    /// The number of times that a device dropped its tables and refetched everything.
    public var newBeginnings = 0
    /// The number of batches of streams that arrived.
    public var batches = 0
    /// The number of streams that were opened.
    public var streams = 0
    /// The number of snapshots that devices began with.
    public var snapshots = 0
    /// The number of snapshots of views that people who see a part were offered.
    public var viewSnapshots = 0
    /// The number of further parts of snapshots that devices added to their data.
    public var parts = 0
    /// The number of requests for a part that the server no longer had.
    public var partsGone = 0
    /// The number of compactions of the server's log.
    public var compactions = 0
    /// The number of transactions of other programs on the server's file.
    public var externalWrites = 0
    /// The number of records that entered or left what somebody sees, in worlds with policies.
    public var moves = 0
    /// The number of confirmations by devices that nothing is left of what their people may not see.
    public var purges = 0
    /// The number of saves that policies did not allow.
    public var forbidden = 0
    /// The number of saves that devices refused at once, by the policies that they know.
    public var refusedAtOnce = 0
    /// The number of faults of each kind. A kind that did not occur is left out.
    public private(set) var faults: [FaultKind: Int] = [:]
    /// A hash of all events in their order (FNV-1a).
    public var trace: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Returns the kinds of faults that a plan asks for and that did not occur.
    public func missing(of plan: FaultPlan) -> [FaultKind] {
        plan.kinds.filter { faults[$0, default: 0] == 0 }
    }

    mutating func add(_ word: String, _ number: Int) {
        for byte in word.utf8 { trace = (trace ^ UInt64(byte)) &* 0x100_0000_01b3 }
        trace = (trace ^ UInt64(truncatingIfNeeded: number)) &* 0x100_0000_01b3
    }

    mutating func happened(_ kind: FaultKind) {
        faults[kind, default: 0] += 1
    }

    /// Adds the counts of another simulation, and hashes the traces together, in order.
    mutating func add(_ other: SimulationReport) {
        steps += other.steps
        saves += other.saves
        accepted += other.accepted
        refused += other.refused
        lostMessages += other.lostMessages
        doubledMessages += other.doubledMessages
        deviceCrashes += other.deviceCrashes
        serverCrashes += other.serverCrashes
        diskErrors += other.diskErrors
        partitions += other.partitions
        newBeginnings += other.newBeginnings
        batches += other.batches
        streams += other.streams
        snapshots += other.snapshots
        viewSnapshots += other.viewSnapshots
        parts += other.parts
        partsGone += other.partsGone
        compactions += other.compactions
        externalWrites += other.externalWrites
        moves += other.moves
        purges += other.purges
        forbidden += other.forbidden
        refusedAtOnce += other.refusedAtOnce
        faults.merge(other.faults, uniquingKeysWith: +)
        add("", Int(truncatingIfNeeded: other.trace))
    }
}

/// A broken promise, with the command that reproduces it.
public struct SimulationFailure: Error, CustomStringConvertible {
    /// The seed of the world that broke it.
    public let seed: UInt64
    /// The number of events delivered until then.
    public let step: Int
    /// A sentence that names the promise, the step and the circumstances.
    public let message: String
    /// The command that runs the same world again.
    public let replay: String

    public var description: String {
        "seed \(seed), step \(step): \(message)\nrun it again: \(replay)"
    }

    /// The message without the parts that differ from run to run: numbers, names and values. While
    /// a world is shrunk, two failures of one shape count as the same.
    var shape: String {
        let words = message.prefix { $0 != ":" }.split(separator: " ")
        return words.filter { word in !word.contains { $0.isNumber } }.joined(separator: " ")
    }
}
