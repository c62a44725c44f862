internal import MartletModel
internal import MartletProtocol

/// The log of a server that accepts everything. Each set gets the next revision, each new record
/// the next id of its type, and references follow. Nothing is checked or refused.
struct MockLog {
    private struct Entry {
        /// The set in the form that its author gets.
        let set: ChangeSet
        let revision: Revision
        /// The device that made the set; nil if it came from the script.
        let author: String?
    }

    private let schema: Schema
    private var entries: [Entry] = []
    private var positions: [String: Int] = [:]
    private(set) var revision: Revision = 0
    private var lastIDs: [String: Int64] = [:]
    /// The permanent ids, by device, type and temporary id.
    private var assigned: [String: RecordID] = [:]

    /// - Parameter sets: The initial sets, in the form that a device gets. A set without a revision
    ///   gets the next one.
    init(schema: Schema, sets: [ChangeSet]) {
        self.schema = schema
        for var set in sets {
            revision = max(revision + 1, set.revision ?? 0)
            set.revision = revision
            append(stamped(set, revision: revision))
        }
    }

    /// Appends a set. The log assigns ids that are above all ids in its sets.
    private mutating func append(_ set: ChangeSet, author: String? = nil) {
        for changes in set.types {
            for case .integer(let id) in changes.create + changes.update {
                lastIDs[changes.name] = max(lastIDs[changes.name] ?? 0, id)
            }
        }
        if let identifier = set.identifier { positions[identifier] = entries.count }
        entries.append(
            Entry(set: set, revision: set.revision ?? revision, author: author))
    }

    /// Raises the newest revision to that of a device, which is ahead if the script has sent it
    /// something.
    mutating func rise(to revision: Revision) {
        self.revision = max(self.revision, revision)
    }

    /// Reserves ids that the script itself has assigned.
    mutating func reserve(_ type: String, upTo id: Int64) {
        lastIDs[type] = max(lastIDs[type] ?? 0, id)
    }

    // MARK: - Answering

    /// Answers `POST /sync`.
    /// - Parameter refusal: The refusal of new sets; nil accepts them.
    mutating func answer(
        _ request: SyncRequest, refusal: ((ChangeSet) -> ChangeSet)? = nil
    ) -> SyncAnswer {
        rise(to: request.maxRevision)
        var refused: [ChangeSet] = []
        for set in request.changeSets {
            if let identifier = set.identifier, positions[identifier] != nil { continue }
            if let refusal {
                refused.append(refusal(set))
            } else {
                accept(set, client: request.clientID ?? "")
            }
        }
        let own = Set(request.changeSets.compactMap(\.identifier))
        var answer = SyncAnswer(maxRevision: revision)
        answer.clientID = request.clientID
        answer.from = request.maxRevision
        answer.request = request.request
        if request.wantsRows { answer.changeSets = [difference(since: request.maxRevision)] }
        for entry in entries {
            let isOwn = entry.set.identifier.map(own.contains) ?? false
            if isOwn {
                answer.changeSets.append(entry.set)
            } else if entry.revision > request.maxRevision, !request.wantsRows {
                answer.changeSets.append(Self.byAnother(entry.set))
            }
        }
        answer.changeSets += refused
        return answer
    }

    /// Returns the answer of `GET /deltas` after a revision.
    func batch(since: Revision, client: String?, wantsRows: Bool) -> DeltaBatch {
        var batch = DeltaBatch(from: since, deltas: [], nextVersion: max(since, revision))
        if wantsRows {
            batch.isDifference = true
            let rows = difference(since: since)
            batch.deltas = deltas(of: rows, revision: revision).map { delta in
                var delta = delta
                delta.version = delta.recordRevision ?? delta.version
                delta.recordRevision = nil
                delta.isNew = delta.operation == .upsert
                return delta
            }
            batch.deltas.sort { $0.version < $1.version }
            return batch
        }
        for entry in entries where entry.revision > since {
            let isOwn = client != nil && entry.author == client
            batch.deltas += deltas(
                of: isOwn ? entry.set : Self.byAnother(entry.set), revision: entry.revision)
        }
        return batch
    }

    private func deltas(of set: ChangeSet, revision: Revision) -> [Delta] {
        // The values came as JSON or from a schema, so none is a NaN.
        (try? Delta.list(of: set, revision: revision, seconds: MockScript.seconds)) ?? []
    }

    /// Returns the form of a set that all devices except its author get.
    private static func byAnother(_ set: ChangeSet) -> ChangeSet {
        var set = set
        (set.identifier, set.sequence, set.conflict) = (nil, nil, nil)
        for type in set.types.indices {
            for entry in set.types[type].entries.indices {
                set.types[type].entries[entry].oldID = nil
            }
        }
        return set
    }

    // MARK: - Accepting

    private mutating func accept(_ sent: ChangeSet, client: String) {
        revision += 1
        var set = ChangeSet(types: sent.types)
        set.identifier = sent.identifier
        set.sequence = sent.sequence
        set.conflict = false
        for changes in sent.types {
            for case .integer(let id) in changes.create where id < 0 {
                let next = (lastIDs[changes.name] ?? 0) + 1
                lastIDs[changes.name] = next
                assigned[Self.key(client, changes.name, .integer(id))] = .integer(next)
            }
        }
        for index in set.types.indices { rewrite(&set.types[index], client: client) }
        set.revision = revision
        append(stamped(set, revision: revision), author: client)
    }

    private static func key(_ client: String, _ type: String, _ id: RecordID) -> String {
        "\(client) \(type) \(id)"
    }

    private func permanent(_ id: RecordID, _ type: String, _ client: String) -> RecordID {
        assigned[Self.key(client, type, id)] ?? id
    }

    private func rewrite(_ changes: inout TypeChanges, client: String) {
        let name = changes.name
        changes.create = changes.create.map { permanent($0, name, client) }
        changes.update = changes.update.map { permanent($0, name, client) }
        changes.delete = changes.delete.map { permanent($0, name, client) }
        for index in changes.entries.indices {
            let id = changes.entries[index].id
            if id.isTemporary { changes.entries[index].oldID = id }
            changes.entries[index].id = permanent(id, name, client)
            for reference in schema[name]?.references ?? [] {
                guard let value = changes.entries[index].attributes[reference.attribute],
                    let target = RecordID(value), target.isTemporary
                else { continue }
                changes.entries[index].attributes[reference.attribute] =
                    permanent(target, reference.target, client).value
            }
        }
    }

    /// Returns the set with its revision in every changed record.
    private func stamped(_ set: ChangeSet, revision: Revision) -> ChangeSet {
        var set = set
        for type in set.types.indices {
            let deleted = Set(set.types[type].delete)
            set.types[type].entries.removeAll { deleted.contains($0.id) }
            for entry in set.types[type].entries.indices {
                set.types[type].entries[entry].revision = revision
            }
        }
        return set
    }

    // MARK: - Folding

    /// Returns all records that changed after a revision, with their current values.
    private func difference(since: Revision) -> ChangeSet {
        var rows: [String: [RecordID: RecordEntry]] = [:]
        var gone: [String: [RecordID: Revision]] = [:]
        for entry in entries {
            for changes in entry.set.types {
                for record in changes.entries {
                    var row = rows[changes.name]?[record.id] ?? RecordEntry(id: record.id)
                    row.revision = entry.revision
                    for (name, value) in zip(record.attributes.names, record.attributes.values) {
                        row.attributes[name] = value
                    }
                    rows[changes.name, default: [:]][record.id] = row
                    gone[changes.name]?[record.id] = nil
                }
                for id in changes.delete {
                    rows[changes.name]?[id] = nil
                    gone[changes.name, default: [:]][id] = entry.revision
                }
            }
        }
        var set = ChangeSet()
        set.isDifference = true
        set.revision = revision
        for name in Set(rows.keys).union(gone.keys).sorted() {
            let changed = (rows[name] ?? [:]).values.filter { ($0.revision ?? 0) > since }
                .sorted { $0.id < $1.id }
            let deleted = (gone[name] ?? [:]).filter { $0.value > since }.keys.sorted()
            guard !changed.isEmpty || !deleted.isEmpty else { continue }
            set.types.append(
                TypeChanges(
                    name: name, update: changed.map(\.id), delete: deleted, entries: changed))
        }
        return set
    }
}
