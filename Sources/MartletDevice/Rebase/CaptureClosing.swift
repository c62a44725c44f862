internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Turns writes that triggers have noted into change sets, in the caller's transaction.
struct CaptureClosing: ChangeSetSink {
    /// Evenly spread random bits, for identities.
    let randomBits: () -> UInt64
    /// Milliseconds since 1970, for the sets' timestamps; nil for the time of the last exchange.
    let now: Int64?

    /// Returns 128 random bits in hexadecimal.
    func newIdentity() -> String {
        [randomBits(), randomBits()].map { bits in
            let digits = String(bits, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    func closeExternal(_ store: LocalStore) throws {
        _ = try closeExternal(store, triesAgain: true)
    }

    /// Turns external writes into change sets.
    ///
    /// The transactions of other programs can neither be told apart nor refused any more. Many
    /// changes are therefore cut into sets that can be sent, and a record that no set can carry is
    /// withheld.
    /// - Parameter triesAgain: Whether to try withheld records again, even if nothing is noted.
    /// - Returns: The number of records that are newly withheld.
    func closeExternal(_ store: LocalStore, triesAgain: Bool) throws -> Int {
        var withheld = Withheld(store: store, now: try timestamp(store))
        guard try store.hasCapture || (triesAgain && !withheld.isEmpty) else { return 0 }
        let notes = try store.takeNotes()
        var changes = try withheld.changes(of: notes, triesAgain: triesAgain)
        try passTemporaryIDs(of: changes, store: store)
        let outbox = Outbox(store: store)
        var sizes: [Int] = []
        for change in changes { sizes.append(try outbox.bytes(of: change)) }
        if sizes.contains(where: { $0 > Limits.savedSetBytes }) {
            (changes, sizes) = try withheld.leaveOut(changes, sizes)
        }
        for set in ExternalCut(changes, sizes: sizes, store: store).sets() where !set.isEmpty {
            try outbox.enqueue(set, identifier: newIdentity(), now: timestamp(store))
        }
        return withheld.added
    }

    func add(_ notes: [NotedRecord], to set: Int64?, store: LocalStore) throws -> Int64? {
        var withheld = Withheld(store: store, now: try timestamp(store))
        let changes = try withheld.changes(of: notes, triesAgain: false)
        try passTemporaryIDs(of: changes, store: store)
        guard !changes.isEmpty else { return set }
        let outbox = Outbox(store: store)
        let sequence = try store.counter("nextSequence")
        try outbox.enqueue(changes, identifier: newIdentity(), now: timestamp(store))
        guard let set else { return sequence }
        return try outbox.join(sequence, into: set) ? set : nil
    }

    func takeIn(_ set: ChangeSet, store: LocalStore) throws {
        let revision = try store.counter("revision")
        // The set's revision is after the device's own, so that it is applied. The device's
        // revision stays.
        var set = set
        set.revision = revision + 1
        try store.setCapture(false)
        // The server accepted these sets before, so nothing is kept of them for a restore.
        var rebase = Rebase(
            store: store, now: try timestamp(store),
            missing: try PendingParts(store: store).missing, mostKeptBytes: 0)
        try rebase.apply([set][...], after: revision)
        try store.setCapture(true)
    }

    /// Moves the next temporary id below those that other programs chose, including the ids of
    /// withheld records.
    private func passTemporaryIDs(of changes: [RecordChange], store: LocalStore) throws {
        let next = try store.counter("nextTemporaryID")
        var lowest = next
        if let noted = try store.integerState("lowestNotedID"), noted >= DeviceTables.lowestID {
            lowest = min(lowest, noted - 1)
        }
        for change in changes where change.operation == .create {
            if case .integer(let id) = change.id, id >= DeviceTables.lowestID {
                lowest = min(lowest, id - 1)
            }
        }
        if lowest < next { try store.setState("nextTemporaryID", .integer(lowest)) }
    }

    private func timestamp(_ store: LocalStore) throws -> Int64 {
        if let now { return now }
        return try store.integerState("lastExchange") ?? 0
    }
}
