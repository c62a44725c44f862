internal import MartletModel
internal import Synchronization

extension Draft: ReviewedDraft {
    func review(_ context: ReadContext, causes: DatabaseChange.Causes) {
        let (state, reviewed) = held.withLock { ($0.state, $0.reviewed) }
        guard state.phase == .open || state.phase == .deleted else {
            if case .save = reviewed { reviewSave(context) }
            return
        }
        if case .save = reviewed { return reviewSave(context) }
        // A draft must not stop a transaction. If it cannot read the record now, it reads it when
        // it is saved.
        guard let found = try? look(state, context) else { return }
        stage(found, state: state, causes: causes)
    }

    /// The result of a look at the record.
    enum Found {
        case unchanged(DraftRecord<Element>, DraftReferences)
        case changed(DraftRecord<Element>, DraftReferences, [DraftNotice.Field])
        case gone
    }

    func look(_ state: DraftState<Element>, _ context: ReadContext) throws -> Found {
        guard let record = try table.read(state.base.key, in: context) else { return .gone }
        let permanent = DraftReferences(
            base: try context.permanentReferences(in: state.base.values, of: table.name),
            edited: try context.permanentReferences(
                in: try table.values(of: state.value), of: table.name))
        let fields = try state.changes(to: record, permanent: permanent, table)
        return fields.isEmpty ? .unchanged(record, permanent) : .changed(record, permanent, fields)
    }

    /// Asks the handler what to do about a result, and stages the answer for the commit.
    func stage(_ found: Found, state: DraftState<Element>, causes: DatabaseChange.Causes) {
        let reviewed: Reviewed?
        switch found {
        case .unchanged(let record, let permanent):
            // The draft takes nothing, unless ids became permanent or a deleted record is back.
            let isSame = state.phase == .open && record.key == state.base.key && permanent.isEmpty
            reviewed = isSame ? nil : .merge(record, .take, permanent)
        case .changed(let record, let permanent, let fields):
            let answer = ask(
                DraftNotice(
                    table: table.name, key: RecordID(record.key), causes: causes, fields: fields,
                    isDeletion: false))
            reviewed = .merge(record, answer, permanent)
        case .gone where state.phase == .deleted:
            reviewed = nil
        case .gone:
            let answer = ask(
                DraftNotice(
                    table: table.name, key: RecordID(state.base.key), causes: causes, fields: [],
                    isDeletion: true))
            reviewed = .deletion(answer)
        }
        held.withLock { $0.reviewed = reviewed }
    }

    private func ask(_ notice: DraftNotice) -> DraftAnswer {
        let (handler, listeners) = held.withLock { ($0.handler, Array($0.listeners.values)) }
        let answer = handler?(notice) ?? .take
        for listener in listeners { listener.yield(notice) }
        return answer
    }

    /// Reads the record that the draft's own save has stored, including the effects of triggers.
    private func reviewSave(_ context: ReadContext) {
        let key = held.withLock { held -> SQLValue? in
            guard case .save(_, let stored?)? = held.reviewed else { return nil }
            return stored.key
        }
        guard let key, let stored = try? table.read(key, in: context) else { return }
        held.withLock { held in
            guard case .save(let saved, _)? = held.reviewed else { return }
            held.reviewed = .save(saved: saved, stored: stored)
        }
    }

    func commit() {
        held.withLock { held in
            guard let reviewed = held.reviewed, held.state.phase != .discarded else { return }
            held.reviewed = nil
            held.version += 1
            // The record could be expressed and filled a moment ago, so it can be now.
            switch reviewed {
            case .merge(let record, let answer, let permanent):
                try? held.state.merge(record, answer: answer, permanent: permanent, table)
            case .deletion(let answer):
                held.state.phase = answer == .saveAsNew ? .new : .deleted
            case .save(let saved, let stored):
                if let stored { try? held.state.didSave(stored, saved: saved, table) }
            }
        }
    }

    func rollBack() {
        held.withLock { $0.reviewed = nil }
    }
}
