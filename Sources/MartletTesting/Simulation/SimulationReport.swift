/// What a simulation did.
public struct SimulationReport: Hashable, Sendable {
    /// Events delivered.
    public var steps = 0
    /// Local saves that were committed.
    public var saves = 0
    /// Entries of the server's log.
    public var accepted = 0
    /// Saves that were refused, all of them kept.
    public var refused = 0
    public var lostMessages = 0
    public var doubledMessages = 0
    public var deviceCrashes = 0
    public var serverCrashes = 0
    public var diskErrors = 0
    public var partitions = 0
    /// Times a device threw its tables away and fetched everything anew.
    public var newBeginnings = 0
    /// Batches of streams that arrived.
    public var batches = 0
    /// Streams that were opened.
    public var streams = 0
    /// Snapshots that devices began with.
    public var snapshots = 0
    /// Further parts of snapshots that devices put in beside what they had.
    public var parts = 0
    /// Times a part was asked for that the server no longer had.
    public var partsGone = 0
    /// Times the log lost the bodies of old entries.
    public var compactions = 0
    /// Transactions of other programs on the server's file.
    public var externalWrites = 0
    /// How often each kind of fault occurred; a kind that did not is left out.
    public private(set) var faults: [FaultKind: Int] = [:]
    /// A hash over everything that happened, in order: FNV-1a.
    public var trace: UInt64 = 0xcbf2_9ce4_8422_2325

    /// The kinds that a plan asks for and that did not occur.
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

    /// Adds what another simulation did; the traces are hashed together, in order.
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
        parts += other.parts
        partsGone += other.partsGone
        compactions += other.compactions
        externalWrites += other.externalWrites
        faults.merge(other.faults, uniquingKeysWith: +)
        add("", Int(truncatingIfNeeded: other.trace))
    }
}

/// A broken promise, and how to see it again.
public struct SimulationFailure: Error, CustomStringConvertible {
    /// The seed of the world that broke it.
    public let seed: UInt64
    /// Events delivered until then.
    public let step: Int
    /// Which promise, where and how.
    public let message: String
    /// What runs the same world again.
    public let replay: String

    public var description: String {
        "seed \(seed), step \(step): \(message)\nrun it again: \(replay)"
    }

    /// The message without what differs from run to run: numbers, names and values. Two failures of
    /// one shape are taken for the same one while a world is shrunk.
    var shape: String {
        let words = message.prefix { $0 != ":" }.split(separator: " ")
        return words.filter { word in !word.contains { $0.isNumber } }.joined(separator: " ")
    }
}
