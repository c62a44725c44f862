import MartletModel
import MartletProtocol

/// One record with a number in it, as a device knows it.
struct Counter {
    private(set) var value: Int64?
    private(set) var revision: Revision = 0

    static let creation = TypeChanges(
        name: "counters", create: [.integer(-1)],
        entries: [
            RecordEntry(
                id: .integer(-1), attributes: Attributes(names: ["value"], values: [.integer(0)]))
        ])

    /// Takes what a change set says of the counter: an accepted one, or the truth of a refused one.
    mutating func apply(_ set: ChangeSet) {
        for entry in set.types.filter({ $0.name == "counters" }).flatMap(\.entries) {
            if case .integer(let value)? = entry.attributes["value"] { self.value = value }
            revision = entry.revision ?? revision
        }
    }

    /// The change to one more, based on what is known.
    func incremented(_ id: RecordID) throws -> TypeChanges {
        guard let value else { throw WireDevice.Unexpected("the counter has no value") }
        return TypeChanges(
            name: "counters", update: [id],
            entries: [
                RecordEntry(
                    id: id, revision: revision,
                    attributes: Attributes(names: ["value"], values: [.integer(value + 1)]))
            ])
    }

    /// Reads once, then adds one until it was accepted so many times; a refusal brings the truth
    /// that the next try is based on.
    /// - Returns: How often it was refused.
    static func increment(
        _ device: WireDevice, _ id: RecordID, times: Int
    ) async throws -> Int {
        var device = device
        try await device.exchange()
        var counter = Counter()
        device.received.forEach { counter.apply($0) }
        var accepted = 0
        var refused = 0
        while accepted < times {
            guard let verdict = try await device.exchange([try counter.incremented(id)]) else {
                throw WireDevice.Unexpected("\(device.name): no verdict")
            }
            counter.apply(verdict)
            guard verdict.conflict == true else {
                accepted += 1
                continue
            }
            guard verdict.reason == .stale else {
                throw WireDevice.Unexpected(
                    "\(device.name): refused, but as \(verdict.reason?.rawValue ?? "nothing")")
            }
            refused += 1
        }
        return refused
    }
}
