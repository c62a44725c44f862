import Martlet
import MartletModel
import MartletProtocol

/// A device without a store: sends change sets and takes answers, and checks of every answer what
/// must hold for all of them.
struct WireDevice: Sendable {
    let name: String
    private let transport: URLSessionTransport
    private(set) var revision: Revision = 0
    private var sequence: Int64 = 0
    /// The accepted sets received, in the order they came.
    private(set) var received: [ChangeSet] = []
    private(set) var dataSet: String?
    private(set) var exchanges = 0

    /// What a server must never do.
    struct Unexpected: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    init(_ name: String, transport: URLSessionTransport) {
        self.name = name
        self.transport = transport
    }

    /// One exchange; with changes, they are one new change set.
    /// - Returns: What became of it; nil without changes.
    /// - Throws: `Unexpected` where the answer is a problem, leaves out a revision, repeats one, or
    ///   shows one that it says it has not reached.
    @discardableResult
    mutating func exchange(_ changes: [TypeChanges] = []) async throws -> ChangeSet? {
        var request = SyncRequest(maxRevision: revision)
        request.clientID = name
        request.acknowledged = sequence
        var identifier: String?
        if !changes.isEmpty {
            sequence += 1
            identifier = "\(name)-\(sequence)"
            var set = ChangeSet(types: changes)
            set.identifier = identifier
            set.sequence = sequence
            set.seen = revision
            request.changeSets = [set]
        }
        let answer = try await transport.exchange(try SyncCoder.encode(request))
        guard answer.status == 200 else {
            throw Unexpected(
                "\(name): \(SyncCoder.decodeProblem(answer.body, status: answer.status))")
        }
        exchanges += 1
        return try take(try SyncCoder.decodeAnswer(answer.body), own: identifier)
    }

    private mutating func take(_ answer: SyncAnswer, own: String?) throws -> ChangeSet? {
        dataSet = answer.dataSet
        var verdict: ChangeSet?
        for set in answer.changeSets {
            if set.identifier != nil, set.identifier == own { verdict = set }
            if set.conflict == true { continue }
            guard set.revision == revision + 1 else {
                throw Unexpected(
                    "\(name): revision \(set.revision ?? 0) came after revision \(revision)")
            }
            revision += 1
            received.append(set)
        }
        guard answer.maxRevision == revision else {
            throw Unexpected(
                "\(name): the answer says it reaches \(answer.maxRevision), and ends at \(revision)"
            )
        }
        guard own == nil || verdict != nil || answer.more else {
            throw Unexpected("\(name): the answer is silent about the set that was sent")
        }
        return verdict
    }

    /// A new record of `marks`, by a number that nobody else uses.
    static func mark(writer: Int, number: Int) -> TypeChanges {
        TypeChanges(
            name: "marks", create: [.integer(-Int64(number) - 1)],
            entries: [
                RecordEntry(
                    id: .integer(-Int64(number) - 1),
                    attributes: Attributes(
                        names: ["writer", "number"],
                        values: [.integer(Int64(writer)), .integer(Int64(number))]))
            ])
    }
}

extension ChangeSet {
    /// Writer and number of the mark a set creates.
    var mark: [Value]? {
        guard let entry = types.first(where: { $0.name == "marks" })?.entries.first,
            let writer = entry.attributes["writer"], let number = entry.attributes["number"]
        else { return nil }
        return [writer, number]
    }
}
