internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Why an own set cannot be applied on top of what has arrived.
struct RedoRefusal: Error {
    let reason: RefusalReason
    let message: String

    init(_ reason: RefusalReason, _ message: String) {
        self.reason = reason
        self.message = message
    }
}

/// Applies one own set again, on top of the confirmed state.
///
/// What it says of attributes and types the schema no longer has is passed over: the set keeps it,
/// and it is sent.
struct RedoneSet {
    let store: LocalStore
    let outbox: Outbox

    /// - Throws: `RedoRefusal` when the set no longer fits; the caller rolls back to its savepoint.
    func apply(_ changes: [StoredChange]) throws {
        for change in changes {
            if let type = change.type { try keepBase(change, type: type) }
        }
        for operation in [RecordChange.Operation.create, .update, .delete] {
            for change in changes where change.operation == operation {
                if let type = change.type { try redo(change, type: type) }
            }
        }
        for change in changes {
            guard let type = change.type else { continue }
            if change.operation == .delete {
                try checkChildren(change, type: type)
            } else {
                try checkParents(change, type: type)
            }
        }
    }

    /// Keeps the confirmed image and its revision, before the first own change to it.
    private func keepBase(_ change: StoredChange, type: Int) throws {
        guard try outbox.base(change.number, change.id) == nil else { return }
        var image: [UInt8]?
        if let present = try store.tables[type].read(change.id) {
            image = try SyncCoder.encode(
                store.stored(present, type: type).withoutNulls())
        }
        let revision = try outbox.confirmedRevision(change.number, change.id) ?? 0
        try outbox.insertBase(change.number, change.id, revision: revision, image: image)
    }

    private func redo(_ change: StoredChange, type: Int) throws {
        let table = store.tables[type]
        let name = store.schema.types[type].name
        do {
            switch change.operation {
            case .create:
                try table.insert(
                    change.id, try written(change, type: type), absentMeansNull: true)
            case .update:
                let after = try written(change, type: type)
                guard try table.update(change.id, after) else {
                    throw RedoRefusal(.stale, "Someone else deleted a record of \(name) first.")
                }
            case .delete:
                guard try table.delete(change.id) else {
                    throw RedoRefusal(.stale, "Someone else deleted a record of \(name) first.")
                }
            }
        } catch let error as SQLiteError where error.isConstraint {
            throw RedoRefusal(
                .constraint,
                "A record of \(name) no longer fits what others changed:"
                    + " \(error.message).")
        }
    }

    /// What a change sets in its table.
    private func written(_ change: StoredChange, type: Int) throws -> Attributes {
        store.known(try change.attributes(), type: type)
    }

    /// Every record a reference names must be there.
    private func checkParents(_ change: StoredChange, type index: Int) throws {
        let type = store.schema.types[index]
        guard !type.references.isEmpty else { return }
        let after = try change.attributes()
        for reference in type.references {
            guard let value = after[reference.attribute], let id = RecordID(value),
                let target = store.schema.index(of: reference.target)
            else { continue }
            if try !store.tables[target].exists(id) {
                throw RedoRefusal(
                    .dependency,
                    "\(type.name).\(reference.attribute) names a record of"
                        + " \(reference.target) that is not there any more.")
            }
        }
    }

    /// A record that others have since tied something to must not be deleted unseen.
    private func checkChildren(_ change: StoredChange, type: Int) throws {
        let name = store.schema.types[type].name
        for (index, child, reference) in store.schema.references(to: name) {
            if try !store.tables[index].ids(where: reference, holds: change.id).isEmpty {
                throw RedoRefusal(
                    .stale,
                    "Someone else tied a record of \(child.name) to the deleted record of"
                        + " \(name).")
            }
        }
    }
}
