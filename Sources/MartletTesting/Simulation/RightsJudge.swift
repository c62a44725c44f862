internal import MartletModel
internal import MartletProtocol
internal import MartletRules
internal import MartletServerCore

/// The rows of the folded log, as policies read them.
struct FoldedRows {
    let schema: Schema
    /// The rows of each type, in the schema's order.
    var rows: [[RecordID: RuleRow]]

    init(_ model: Model, _ schema: Schema) {
        self.schema = schema
        rows = schema.types.map { type in
            var rows: [RecordID: RuleRow] = [:]
            for (id, record) in model.records[type.name] ?? [:] {
                rows[id] = [id.value] + type.attributes.map { record[$0.name] ?? .null }
            }
            return rows
        }
    }

    /// Returns look-ups in these rows.
    func lookups() -> RowLookups {
        RowLookups { type, column, values in
            rows[type].values.filter { values?.contains($0[column]) ?? true }
        }
    }

    /// Returns the records that somebody sees.
    func visible(
        by program: RulesProgram, to viewer: Viewer, _ lookups: RowLookups
    ) throws -> [String: Set<RecordID>] {
        let evaluator = RuleEvaluator(program, for: viewer, over: lookups)
        var visible: [String: Set<RecordID>] = [:]
        for (index, type) in schema.types.enumerated() {
            for (id, row) in rows[index] where try evaluator.maySelect(row, of: index) {
                visible[type.name, default: []].insert(id)
            }
        }
        return visible
    }
}

/// Judges a set as PostgreSQL would in a transaction of its INSERTs, UPDATEs and DELETEs. It shares only
/// the evaluation of a condition with the server.
struct RightsJudge {
    enum Finding {
        case allowed
        /// It names a record that its sender may not see, or a key that such a record has.
        case hidden(Ledger.Record)
        /// A policy or a privilege does not allow a change.
        case forbidden(Ledger.Record)
        /// It names a record by a temporary id that nobody knows.
        case unknown
    }

    let program: RulesProgram
    let viewer: Viewer
    let schema: Schema
    /// The permanent ids of the sender's earlier records.
    let permanent: [Ledger.Record: RecordID]

    private struct Edit {
        let type: Int
        let id: RecordID
        let attributes: Attributes

        init(_ type: Int, _ id: RecordID, _ changes: TypeChanges) {
            self.type = type
            self.id = id
            attributes = changes.entries.first { $0.id == id }?.attributes ?? Attributes()
        }
    }

    /// - Parameter model: The records before the set.
    func finding(on set: ChangeSet, after model: Model) throws -> Finding {
        let before = FoldedRows(model, schema)
        var (creates, updates, deletes): ([Edit], [Edit], [Edit]) = ([], [], [])
        for changes in set.types {
            guard let type = schema.index(of: changes.name) else { return .unknown }
            creates += changes.create.map { Edit(type, $0, changes) }
            updates += changes.update.map { Edit(type, $0, changes) }
            deletes += changes.delete.map { Edit(type, $0, changes) }
        }
        var hidden: Ledger.Record?
        var allowed: Set<RecordAddress> = []
        var open: [(edit: Edit, row: RuleRow, isDelete: Bool)] = []
        let evaluator = RuleEvaluator(program, for: viewer, over: before.lookups())
        for (edit, isDelete) in deletes.map({ ($0, true) }) + updates.map({ ($0, false) }) {
            guard let id = permanentID(edit.type, edit.id) else { return .unknown }
            guard let row = before.rows[edit.type][id],
                try evaluator.maySelect(row, of: edit.type)
            else {
                hidden = hidden ?? record(edit)
                continue
            }
            let refusal =
                isDelete
                ? try evaluator.refusalToDelete(row, of: edit.type)
                : try evaluator.refusalToUpdate(
                    row, columns: edit.attributes.names, of: edit.type)
            if refusal != nil { open.append((edit, row, isDelete)) }
            if refusal == nil, isDelete { allowed.insert(RecordAddress(edit.type, id)) }
        }
        // ON DELETE actions need no right.
        while let index = open.firstIndex(where: { isAction($0.edit, $0.row, $0.isDelete, allowed) }
        ) {
            let (edit, row, isDelete) = open.remove(at: index)
            if isDelete { allowed.insert(RecordAddress(edit.type, row)) }
        }
        if let refused = open.first { return .forbidden(record(refused.edit)) }
        if let hidden { return .hidden(hidden) }
        for edit in creates {
            guard let row = before.rows[edit.type][edit.id] else { continue }
            return try evaluator.maySelect(row, of: edit.type) ? .unknown : .hidden(record(edit))
        }
        let written = updates.filter { edit in
            let row = permanentID(edit.type, edit.id).flatMap { before.rows[edit.type][$0] }
            return !(row.map { isAction(edit, $0, false, allowed) } ?? false)
        }
        return try finding(after: before, creates, written)
    }

    /// Returns whether a change is what ON DELETE does if these records are deleted.
    private func isAction(
        _ edit: Edit, _ row: RuleRow, _ isDelete: Bool, _ deleted: Set<RecordAddress>
    ) -> Bool {
        let type = schema.types[edit.type]
        func refers(_ action: Reference.Action) -> Set<String> {
            let references = type.references.filter { reference in
                guard reference.onDelete == action,
                    let target = schema.index(of: reference.target),
                    let column = type.index(ofAttribute: reference.attribute),
                    let id = RecordID(row[column + 1])
                else { return false }
                return deleted.contains(RecordAddress(target, id))
            }
            return Set(references.map(\.attribute))
        }
        if isDelete { return !refers(.cascade).isEmpty }
        return !edit.attributes.isEmpty && edit.attributes.values.allSatisfy { $0 == .null }
            && refers(.setNull).isSuperset(of: edit.attributes.names)
    }

    /// Judges the new and the changed rows, in their order. Conditions find those before them.
    private func finding(
        after before: FoldedRows, _ creates: [Edit], _ updates: [Edit]
    ) throws -> Finding {
        var rows = before
        for (edit, isNew) in creates.map({ ($0, true) }) + updates.map({ ($0, false) }) {
            guard let id = isNew ? edit.id : permanentID(edit.type, edit.id) else {
                return .unknown
            }
            let type = schema.types[edit.type]
            var row = rows.rows[edit.type][id] ?? [id.value] + type.attributes.map { _ in .null }
            for (index, attribute) in type.attributes.enumerated() {
                guard let value = edit.attributes[attribute.name] else { continue }
                guard let value = resolved(value, attribute.name, of: type, creates) else {
                    return .unknown
                }
                row[index + 1] = value
            }
            let evaluator = RuleEvaluator(program, for: viewer, over: rows.lookups())
            let refusal =
                isNew
                ? try evaluator.refusalToInsert(
                    row, columns: type.givenColumns(edit.attributes.names), of: edit.type)
                : try evaluator.refusalToLeave(row, of: edit.type)
            if refusal != nil { return .forbidden(record(edit)) }
            rows.rows[edit.type][id] = row
        }
        return .allowed
    }

    private func record(_ edit: Edit) -> Ledger.Record {
        Ledger.Record(type: schema.types[edit.type].name, id: edit.id)
    }

    private func permanentID(_ type: Int, _ id: RecordID) -> RecordID? {
        guard id.isTemporary else { return id }
        return permanent[Ledger.Record(type: schema.types[type].name, id: id)]
    }

    /// Returns a value with the permanent id of an earlier record in place of the temporary one; nil if
    /// nobody knows it.
    private func resolved(
        _ value: Value, _ attribute: String, of type: EntityType, _ creates: [Edit]
    ) -> Value? {
        guard let reference = type.references.first(where: { $0.attribute == attribute }),
            let id = RecordID(value), id.isTemporary
        else { return value }
        let target = Ledger.Record(type: reference.target, id: id)
        if creates.contains(where: { record($0) == target }) { return value }
        return permanent[target]?.value
    }
}
