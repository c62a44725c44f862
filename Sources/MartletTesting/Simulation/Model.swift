internal import MartletModel
internal import MartletProtocol

/// The data set as plain dictionaries: the change log, folded in the simplest way.
struct Model {
    private(set) var revision: Revision = 0
    private(set) var records: [String: [RecordID: [String: Value]]] = [:]

    /// The revision of the last change of each existing record.
    private var changed: [String: [RecordID: Revision]] = [:]

    /// Records that other tables need not have.
    struct Absence {
        /// Returns whether records of a type may be missing.
        let includes: (String) -> Bool
        /// The revision since which a missing record must not have changed.
        let until: Revision
    }

    /// Folds the next entry in.
    /// - Returns: A sentence about the fault of the entry; nil if there is none.
    mutating func fold(_ entry: ChangeSet, revision: Revision) -> String? {
        guard revision == self.revision + 1 else {
            return "the log goes from revision \(self.revision) to \(revision)"
        }
        self.revision = revision
        for changes in entry.types {
            let created = Set(changes.create)
            let deleted = Set(changes.delete)
            for item in changes.entries where !deleted.contains(item.id) {
                var record: [String: Value] = [:]
                if created.contains(item.id) {
                    if records[changes.name]?[item.id] != nil {
                        return "revision \(revision) creates \(changes.name) \(item.id) again"
                    }
                } else {
                    guard let present = records[changes.name]?[item.id] else {
                        return "revision \(revision) updates \(changes.name) \(item.id), which is"
                            + " not there"
                    }
                    record = present
                }
                for (name, value) in zip(item.attributes.names, item.attributes.values) {
                    record[name] = value == .null ? nil : value
                }
                records[changes.name, default: [:]][item.id] = record
                changed[changes.name, default: [:]][item.id] = revision
            }
            for id in changes.delete {
                if records[changes.name]?.removeValue(forKey: id) == nil {
                    return "revision \(revision) deletes \(changes.name) \(id), which is not there"
                }
            }
        }
        return nil
    }

    /// Returns the part that a device sees whose app's version does not know all types and
    /// attributes.
    func only(_ knows: (_ type: String, _ attribute: String) -> Bool) -> Model {
        var seen = self
        for (type, records) in records {
            seen.records[type] =
                knows(type, "")
                ? records.mapValues { $0.filter { knows(type, $0.key) } } : [:]
        }
        return seen
    }

    /// Returns the part that has these records.
    func only(_ shown: [String: Set<RecordID>]) -> Model {
        var seen = self
        for (type, records) in records {
            seen.records[type] = records.filter { shown[type]?.contains($0.key) ?? false }
        }
        return seen
    }

    /// Returns the first difference from another state, in words; nil if they are equal.
    /// - Parameters:
    ///   - absence: The records that may be missing; nil for none.
    ///   - isElsewhen: Whether a record may have another form.
    func difference(
        from other: [String: [RecordID: [String: Value]]], allowing absence: Absence? = nil,
        isElsewhen: (String, RecordID, [String: Value]?) -> Bool = { _, _, _ in false }
    ) -> String? {
        for type in Set(records.keys).union(other.keys).sorted() {
            let mine = records[type] ?? [:]
            let theirs = other[type] ?? [:]
            for id in Set(mine.keys).union(theirs.keys).sorted() where mine[id] != theirs[id] {
                if let absence, theirs[id] == nil, absence.includes(type),
                    changed[type]?[id].map({ $0 <= absence.until }) ?? false
                {
                    continue
                }
                if isElsewhen(type, id, theirs[id]) { continue }
                return "\(type) \(id): the log says \(text(mine[id])), the tables say"
                    + " \(text(theirs[id]))"
            }
        }
        return nil
    }

    private func text(_ record: [String: Value]?) -> String {
        guard let record else { return "nothing" }
        return record.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            .joined(separator: " ")
    }
}
