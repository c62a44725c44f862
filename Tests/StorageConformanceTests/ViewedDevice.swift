import MartletModel
import MartletProtocol
import MartletServerCore
import SetTexts

/// A device that only keeps what the server sends it.
final class ViewedDevice {
    let name: String
    var principal: Principal
    private(set) var revision: Revision = 0
    private(set) var lineage: String?
    /// The records by type, without nulls.
    private(set) var records: [String: [RecordID: [String: Value]]] = [:]
    /// True unless the last answer says that more follows.
    private(set) var isUpToDate = true
    /// How often the server did not know what the device has.
    private(set) var beginnings = 0
    /// The view that the last answer named.
    private(set) var view: Int64?
    /// All bytes of the last answer.
    private(set) var heard = ""

    init(_ name: String, _ principal: Principal) {
        self.name = name
        self.principal = principal
    }

    /// Makes exchanges until the server has no more, or a number of them.
    /// - Returns: What became of the sets.
    @discardableResult
    func exchange(
        with server: TestDataSet, _ sets: [SetText] = [], rounds: Int = 400,
        check: (ViewedDevice) throws -> Void = { _ in }
    ) throws -> [String] {
        var fates: [String] = []
        for _ in 0..<rounds {
            let named = lineage.map { "\"lineage\":\"\($0)\"," } ?? ""
            let text = """
                {"clientId":"\(name)","protocol":1,"maxRevision":\(revision),\(named)\
                "changeSets":[\(sets.map(\.description).joined(separator: ","))]}
                """
            switch try server.process([text], as: principal)[0] {
            case .failure(let problem):
                guard problem.kind == "view" || problem.kind == "lineage" else { throw problem }
                (revision, lineage, records) = (0, nil, [:])
                beginnings += 1
            case .success(let answer):
                heard = String(decoding: answer.body, as: UTF8.self)
                try fates += apply(SyncCoder.decodeAnswer(answer.body))
                try check(self)
                if isUpToDate { return fates }
            }
        }
        return fates
    }

    private func apply(_ answer: SyncAnswer) -> [String] {
        var fates: [String] = []
        var covered = revision
        view = answer.view
        for set in answer.changeSets {
            if set.identifier != nil { fates.append(set.fate) }
            guard set.conflict != true, let reached = set.revision else { continue }
            if set.isDifference {
                for changes in set.types { take(changes, isWhole: true) }
                covered = max(covered, reached)
            } else if reached > covered {
                for changes in set.types { take(changes, isWhole: false) }
            }
        }
        (revision, lineage, isUpToDate) = (answer.maxRevision, answer.lineage, !answer.more)
        return fates
    }

    private func take(_ changes: TypeChanges, isWhole: Bool) {
        var kept = records[changes.name] ?? [:]
        for id in changes.delete { kept[id] = nil }
        for entry in changes.entries where !changes.delete.contains(entry.id) {
            var record = isWhole ? [:] : kept[entry.id] ?? [:]
            for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                record[name] = value == .null ? nil : value
            }
            kept[entry.id] = record
        }
        records[changes.name] = kept.isEmpty ? nil : kept
    }

    /// Pretends to have been told something else.
    func lie(revision: Revision, lineage: String?) {
        (self.revision, self.lineage) = (revision, lineage)
    }
}
