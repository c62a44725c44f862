import Martlet
import MartletModel
import Synchronization

/// A record of the demo's data set.
struct DemoRecord: Hashable, Sendable {
    let type: String
    let id: RecordID
}

/// Notes which records with policies a device has after each exchange.
final class ViewMoves: Sendable {
    /// The difference between two exchanges of a device.
    struct Step: Sendable {
        /// The device's revisions before and after.
        let from: Revision
        let to: Revision
        let came: Set<DemoRecord>
        let went: Set<DemoRecord>
    }

    private struct State {
        var revision: Revision = 0
        var records: Set<DemoRecord> = []
        var steps: [Step] = []
    }

    private let state: Mutex<State>

    /// - Parameter client: A device's client, which does not exchange meanwhile.
    init(_ client: MartletClient) async throws {
        let (revision, records) = try await Self.look(client)
        state = Mutex(State(revision: revision, records: records))
    }

    var steps: [Step] { state.withLock(\.steps) }

    /// Compares the device with its state after the exchange before.
    func look(at client: MartletClient) async throws {
        let (revision, records) = try await Self.look(client)
        state.withLock { state in
            let step = Step(
                from: state.revision, to: revision, came: records.subtracting(state.records),
                went: state.records.subtracting(records))
            if !step.came.isEmpty || !step.went.isEmpty { state.steps.append(step) }
            (state.revision, state.records) = (revision, records)
        }
    }

    /// Temporary ids are below zero. The records get others with the server's answer.
    private static func look(_ client: MartletClient) async throws -> (Revision, Set<DemoRecord>) {
        let revision = try await client.status().revision
        let records = try await client.read { context in
            var records: Set<DemoRecord> = []
            for type in OrganisationRules.types {
                for row in try context.rows("SELECT id FROM \(type) WHERE id > 0") {
                    guard let id = row.values.first.flatMap({ RecordID($0) }) else { continue }
                    records.insert(DemoRecord(type: type, id: id))
                }
            }
            return records
        }
        return (revision, records)
    }
}
