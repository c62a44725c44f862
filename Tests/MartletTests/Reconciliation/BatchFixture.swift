import MartletModel
import MartletProtocol
import SmallWorlds

@testable import Martlet
@testable import MartletDevice

extension Delta {
    /// One record's change, as a server writes it.
    static func upsert(
        _ version: Revision, _ type: String, _ id: String, _ payload: String, isNew: Bool = false,
        own: String? = nil, old: Int64? = nil
    ) -> Delta {
        Delta(
            version: version, seconds: 1, type: type, id: id, operation: .upsert,
            payload: payload, isNew: isNew, identifier: own, oldID: old)
    }

    static func delete(_ version: Revision, _ type: String, _ id: String) -> Delta {
        Delta(version: version, seconds: 1, type: type, id: id, operation: .delete)
    }
}

extension DeltaBatch {
    static func batch(_ from: Revision?, _ next: Revision, _ deltas: [Delta]) -> DeltaBatch {
        DeltaBatch(
            from: from, deltas: deltas, nextVersion: next, dataSet: "d", lineage: "l\(next)")
    }
}

extension DeviceFixture {
    /// - Returns: What became of the batch, in a word.
    @discardableResult
    func take(_ batch: DeltaBatch) throws -> String {
        switch try store.apply(batch, now: 3_000) {
        case .applied(_, let revision): "applied \(revision)"
        case .old: "old"
        case .needsExchange: "needs exchange"
        }
    }

    /// Two teams at revision 2.
    static func withTeams() throws -> DeviceFixture {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(1, .created("teams", 1, at: 1, ["name": "Falcons", "city": "Bergen"])),
                .entry(2, .created("teams", 2, at: 2, ["name": "Ravens"])),
            ], reaching: 2)
        return device
    }

    /// A difference as an answer carries it.
    static func difference(_ revision: Revision, _ types: TypeChanges...) -> ChangeSet {
        var set = ChangeSet(types: types)
        set.revision = revision
        set.isDifference = true
        return set
    }
}
