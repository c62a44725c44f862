internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Turns writes that triggers have noted into change sets, in the caller's transaction.
struct CaptureClosing: ChangeSetSink {
    /// Evenly spread random bits, for identities.
    let randomBits: () -> UInt64
    /// Milliseconds since 1970, for the sets' timestamps; nil: as of the last exchange.
    let now: Int64?

    /// 128 random bits in hexadecimal.
    func newIdentity() -> String {
        [randomBits(), randomBits()].map { bits in
            let digits = String(bits, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Turns what foreign connections wrote into change sets.
    ///
    /// Their transactions cannot be told apart and cannot be refused any more, so a large note is
    /// cut into sets of a size that can be sent.
    func closeForeign(_ store: LocalStore) throws {
        guard try store.hasCapture else { return }
        let changes = try store.takeCapture()
        try passTemporaryIDs(of: changes, store: store)
        let outbox = Outbox(store: store)
        var start = 0
        while start < changes.count {
            let end = min(changes.count, start + Outbox.foreignSetRecords)
            try outbox.enqueue(
                Array(changes[start..<end]), identifier: newIdentity(), now: timestamp(store))
            start = end
        }
    }

    func add(_ changes: [RecordChange], to set: Int64?, store: LocalStore) throws -> Int64? {
        try passTemporaryIDs(of: changes, store: store)
        let outbox = Outbox(store: store)
        let sequence = try store.counter("nextSequence")
        try outbox.enqueue(changes, identifier: newIdentity(), now: timestamp(store))
        guard let set else { return sequence }
        return try outbox.join(sequence, into: set) ? set : nil
    }

    /// Leaves the temporary ids behind that were taken without asking here.
    private func passTemporaryIDs(of changes: [RecordChange], store: LocalStore) throws {
        var lowest = try store.counter("nextTemporaryID")
        for change in changes where change.operation == .create {
            if case .integer(let id) = change.id { lowest = min(lowest, id - 1) }
        }
        try store.setState("nextTemporaryID", .integer(lowest))
    }

    private func timestamp(_ store: LocalStore) throws -> Int64 {
        if let now { return now }
        return try store.integerState("lastExchange") ?? 0
    }
}
