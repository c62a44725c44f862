internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The reason why an own set cannot be applied on top of the server's changes.
struct ReplayRefusal: Error {
    let reason: RefusalReason
    let message: String

    init(_ reason: RefusalReason, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// Returns the refusal of a change to a record that the user may not see any more.
    static func hidden(_ type: String) -> ReplayRefusal {
        ReplayRefusal(
            .permission,
            "A record of \(type) is no longer among those that you may see; it may have been deleted."
        )
    }

    /// Returns the refusal of a change to a record that another device has changed.
    static func overtaken(_ type: String) -> ReplayRefusal {
        ReplayRefusal(.stale, "Someone else changed the same record of \(type) first.")
    }
}

/// Applies one own set again, on top of the confirmed state.
///
/// It skips the attributes and types that the schema no longer has. The set keeps them, and they
/// are sent.
struct SetReplay {
    let store: LocalStore
    let outbox: Outbox
    /// The records that are known not to exist, if the user sees a part of the records. The set may
    /// refer to others that are not here: the server knows whether they exist. Nil if every record
    /// has to be here.
    var absent: Set<RecordKey>?

    /// Applies all of the set, or nothing.
    ///
    /// Records of one set may pass a unique value on to each other, and the order of their
    /// statements is not stored. Deletes come first, to make room. If that is not enough, all rows
    /// of the set are deleted before any is inserted.
    /// - Throws: `ReplayRefusal` if the set no longer fits.
    func apply(_ changes: [StoredChange]) throws {
        let connection = store.connection
        try connection.run("SAVEPOINT martlet_redo")
        do {
            do {
                try perform(changes, by: write)
            } catch let error as SQLiteError where error.isUniqueViolation {
                try connection.run("ROLLBACK TO martlet_redo")
                try perform(changes, by: replace)
            }
            try connection.run("RELEASE martlet_redo")
        } catch let refusal as ReplayRefusal {
            try connection.run("ROLLBACK TO martlet_redo")
            try connection.run("RELEASE martlet_redo")
            throw refusal
        }
    }

    private func perform(
        _ changes: [StoredChange], by writing: ([StoredChange], Unshown) throws -> Void
    ) throws {
        var unshown = Unshown()
        for change in changes {
            if let type = change.type { try keepBase(change, type: type, &unshown) }
        }
        try writing(changes, unshown)
        try check(changes)
    }

    /// The confirmed values of records that the set changes and no table shows, because the table
    /// refuses them.
    private typealias Unshown = [RecordKey: Attributes]

    private func write(_ changes: [StoredChange], _ unshown: Unshown) throws {
        for operation in [RecordOperation.delete, .update, .create] {
            for change in changes where change.operation == operation {
                if let type = change.type { try redo(change, type: type, unshown[change.key]) }
            }
        }
    }

    /// Deletes all rows of the set, then inserts those that it leaves.
    private func replace(_ changes: [StoredChange], _ unshown: Unshown) throws {
        let images = try changes.map { try takeOut($0, unshown[$0.key]) }
        for (change, image) in zip(changes, images) {
            if let type = change.type, let image { try putIn(change, image, type: type) }
        }
    }

    /// Deletes a record's row.
    /// - Returns: The values of the new row; nil if there is to be none, or the type has no table.
    private func takeOut(_ change: StoredChange, _ unshown: Attributes?) throws -> Attributes? {
        guard let type = change.type else { return nil }
        var image = Attributes()
        if change.operation != .create {
            let present = try store.tables[type].read(change.id)
            _ = try store.tables[type].delete(change.id)
            guard let found = present.map({ store.stored($0, type: type) }) ?? unshown else {
                throw isGone(type)
            }
            image = found
        }
        if change.operation == .delete { return nil }
        let after = try written(change, type: type)
        for (name, value) in zip(after.names, after.values) { image[name] = value }
        return image
    }

    private func putIn(_ change: StoredChange, _ image: Attributes, type: Int) throws {
        do {
            try store.tables[type].insert(
                change.id, image, absentMeansNull: change.operation != .create)
        } catch  where error.isConstraint {
            throw misfit(error, type)
        }
    }

    private func misfit(_ error: SQLiteError, _ type: Int) -> ReplayRefusal {
        ReplayRefusal(
            .constraint,
            "A record of \(store.schema.types[type].name) no longer fits what others changed:"
                + " \(error.message).")
    }

    private func isGone(_ type: Int) -> ReplayRefusal {
        ReplayRefusal(
            .stale,
            "A record of \(store.schema.types[type].name) is not there any more: it was deleted, you may"
                + " not see it any more, or the server was restored from a backup that lacks it.")
    }

    private func check(_ changes: [StoredChange]) throws {
        for change in changes {
            guard let type = change.type else { continue }
            if change.operation == .delete {
                try checkChildren(change, type: type)
            } else {
                try checkParents(change, type: type)
            }
        }
    }

    /// Stores the confirmed image of a record and its revision, before the first own change to it.
    /// If the record is quarantined and has no row, its image is taken out of quarantine, for as
    /// long as the edit exists.
    private func keepBase(
        _ change: StoredChange, type: Int, _ unshown: inout Unshown
    ) throws {
        guard try outbox.base(change.number, change.id) == nil else { return }
        var image: [UInt8]?
        var quarantine = Quarantine(store: store, now: 0)
        let name = store.schema.types[type].name
        if let present = try store.tables[type].read(change.id) {
            image = try SyncCoder.encode(
                store.stored(present, type: type).withoutNulls())
        } else if change.operation != .create, let kept = try quarantine.record(name, change.id) {
            image = try SyncCoder.encode(kept.attributes.withoutNulls())
            unshown[change.key] = store.known(kept.attributes, type: type)
            try quarantine.remove(name, change.id)
            try RemoteApplier(store: store, now: 0)
                .remember(change.number, change.id, revision: kept.revision)
        }
        // The base of a record that its own set recreates is everything that the set had seen of
        // it.
        let made = change.operation == .create ? change.baseRevision : 0
        let revision = try outbox.confirmedRevision(change.number, change.id) ?? made
        try outbox.insertBase(change.number, change.id, revision: revision, image: image)
    }

    private func redo(_ change: StoredChange, type: Int, _ unshown: Attributes?) throws {
        let table = store.tables[type]
        do {
            switch change.operation {
            case .create:
                // A new record names all its values, except for columns that were added later,
                // which get their default.
                try table.insert(
                    change.id, try written(change, type: type), absentMeansNull: false)
            case .update:
                let after = try written(change, type: type)
                if try table.update(change.id, after) { return }
                guard var image = unshown else { throw isGone(type) }
                for (name, value) in zip(after.names, after.values) { image[name] = value }
                try table.insert(change.id, image, absentMeansNull: true)
            case .delete:
                guard try table.delete(change.id) || unshown != nil else { throw isGone(type) }
            }
        } catch let error as SQLiteError where error.isConstraint && !error.isUniqueViolation {
            throw misfit(error, type)
        }
    }

    /// Returns the attributes that a change sets in its table.
    private func written(_ change: StoredChange, type: Int) throws -> Attributes {
        store.known(try change.attributes(), type: type)
    }

    /// Checks that every record that a reference names exists, or one whose key is equal by the
    /// column's collation, or that it may be one that the user may not see.
    /// - Throws: `ReplayRefusal` if one does not.
    private func checkParents(_ change: StoredChange, type index: Int) throws {
        let type = store.schema.types[index]
        guard !type.references.isEmpty else { return }
        let after = try change.attributes()
        for reference in type.references {
            guard let value = after[reference.attribute], let id = RecordID(value),
                let target = store.schema.index(of: reference.target)
            else { continue }
            let table = store.tables[target]
            // Only a record of this device has a temporary id.
            let isNowhere =
                id.isTemporary
                || absent?.contains(RecordKey(type: store.numbers[target], id: id)) != false
            if isNowhere, try !table.exists(id), try table.equal(to: id) == nil {
                throw ReplayRefusal(
                    .dependency,
                    "\(type.name).\(reference.attribute) names a record of"
                        + " \(reference.target) that is not there any more.")
            }
        }
    }

    /// Checks that no other record refers to a deleted one. Another device may have added such a
    /// reference since, which the user has not seen.
    /// - Throws: `ReplayRefusal` if one does.
    private func checkChildren(_ change: StoredChange, type: Int) throws {
        // A record whose key is equal by the column's collation takes the place of the deleted
        // record.
        if try store.tables[type].equal(to: change.id) != nil { return }
        let name = store.schema.types[type].name
        for (index, child, reference) in store.schema.references(to: name) {
            if try !store.tables[index].ids(where: reference, holds: change.id).isEmpty {
                throw ReplayRefusal(
                    .stale,
                    "Someone else tied a record of \(child.name) to the deleted record of"
                        + " \(name).")
            }
        }
    }
}
