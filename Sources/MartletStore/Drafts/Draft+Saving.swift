public import MartletModel
internal import Synchronization

extension Draft {
    /// Saves the edited fields, and only those, as one save. If no field was edited, it writes
    /// nothing. Fields that are edited meanwhile stay edited.
    /// - Returns: The record's key.
    /// - Throws: `DraftError`: `.recordGone` if the record was deleted, `.discarded` if the draft
    ///   was discarded. `StoreError` if the database refuses the values. The draft stays as it is
    ///   then.
    @discardableResult
    public func save() async throws -> RecordID {
        try await database.write { context in try self.save(in: context) }
    }

    /// Saves all fields as a new record with a new key, and continues as that record's draft.
    /// - Returns: The new record's key.
    /// - Throws: `DraftError` `.discarded` if the draft was discarded. `StoreError` if the database
    ///   refuses the values.
    @discardableResult
    public func saveAsNew() async throws -> RecordID {
        try await database.write { context in try self.save(in: context, asNew: true) }
    }

    private func save(in context: WriteContext, asNew: Bool = false) throws -> RecordID {
        var state = held.withLock { $0.state }
        if !asNew, state.phase == .open || state.phase == .deleted {
            state = try caughtUp(state, context)
        }
        switch state.phase {
        case .discarded: throw DraftError.discarded(table.name)
        case .deleted where !asNew: throw DraftError.recordGone(table.name)
        case .open where !asNew: return try update(state, context)
        case .open, .deleted, .new: return try insert(state, context)
        }
    }

    /// Returns the state after changes that another process may have made unnoticed until now.
    private func caughtUp(
        _ state: DraftState<Element>, _ context: WriteContext
    ) throws -> DraftState<Element> {
        // That change was committed before this save began, so it stays whatever the save's outcome
        // is.
        stage(try look(state, context), state: state, causes: .elsewhere)
        commit()
        return held.withLock { $0.state }
    }

    private func update(_ state: DraftState<Element>, _ context: WriteContext) throws -> RecordID {
        var values = try state.edits(table)
        let key = try RecordID(sqlValue: state.base.key)
        guard !values.isEmpty else { return key }
        values[table.keyColumn] = state.base.key
        let saved = try table.values(of: state.value)
        guard try table.update(values, context) else {
            guard try table.find(state.base.key, context) == nil else {
                throw RowOutcome.passedOver(table.name, key)
            }
            throw DraftError.recordGone(table.name)
        }
        stageSave(saved, try table.read(state.base.key, in: context))
        return key
    }

    private func insert(_ state: DraftState<Element>, _ context: WriteContext) throws -> RecordID {
        let saved = try table.values(of: state.value)
        var values = saved
        let permanent = try context.permanentReferences(in: saved, of: table.name)
        for (name, value) in zip(permanent.names, permanent.values) { values[name] = value }
        let key = try table.insert(values, context)
        let stored = try table.read(key, in: context)
        guard key != 0 || stored != nil else { throw RowOutcome.passedOver(table.name, nil) }
        stageSave(saved, stored)
        return try RecordID(sqlValue: key)
    }

    private func stageSave(_ saved: RecordValues, _ stored: DraftRecord<Element>?) {
        held.withLock { $0.reviewed = .save(saved: saved, stored: stored) }
    }
}
