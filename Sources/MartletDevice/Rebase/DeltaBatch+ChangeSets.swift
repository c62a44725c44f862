internal import MartletModel
internal import MartletProtocol
internal import MartletStore

extension DeltaBatch {
    /// Returns the deltas after a cursor as change sets, as `POST /sync` would have sent them. The
    /// batch must not be a difference.
    /// - Parameters:
    ///   - cursor: The revision of the device; deltas up to it are skipped.
    ///   - schema: The schema, which names the types that have text keys.
    /// - Throws: `StoreError` `.inconsistent` for a delta that cannot be read, naming it.
    /// - Complexity: O(*n*) in the bytes of the payloads that have not been read yet.
    func changeSets(after cursor: Revision, schema: Schema) throws -> [ChangeSet] {
        var sets: [ChangeSet] = []
        var current = Grouping(schema: schema)
        for delta in deltas where delta.version > cursor {
            if delta.version != current.revision {
                if let set = current.take() { sets.append(set) }
                current.revision = delta.version
            }
            try current.add(delta)
        }
        if let set = current.take() { sets.append(set) }
        return sets
    }

    /// The deltas of one change set, by type.
    private struct Grouping {
        let schema: Schema
        var revision: Revision = 0
        private var types: [TypeChanges] = []
        private var identifier: String?
        /// The position of the type added last, and whether its keys are texts. Most deltas have
        /// the same type as the one before.
        private var last = 0
        private var hasTextKeys: Bool?

        init(schema: Schema) {
            self.schema = schema
        }

        mutating func take() -> ChangeSet? {
            guard !types.isEmpty else { return nil }
            var set = ChangeSet(types: types)
            set.revision = revision
            if let identifier {
                set.identifier = identifier
                set.conflict = false
            }
            types = []
            identifier = nil
            last = 0
            return set
        }

        mutating func add(_ delta: Delta) throws {
            let index = typeIndex(of: delta.type)
            let id = try recordID(of: delta)
            if let own = delta.identifier { identifier = own }
            guard delta.operation == .upsert else {
                return types[index].delete.append(id)
            }
            let attributes: Attributes
            do throws(WireFault) {
                attributes = try delta.attributes()
            } catch {
                throw StoreError(
                    .inconsistent,
                    "The delta of \(delta.type) \(delta.id) at version \(delta.version) cannot be"
                        + " read: \(error.message)")
            }
            if delta.isNew {
                types[index].create.append(id)
            } else {
                types[index].update.append(id)
            }
            types[index].entries.append(
                RecordEntry(
                    id: id, revision: delta.recordRevision ?? delta.version,
                    oldID: delta.oldID.map { .integer($0) }, attributes: attributes))
        }

        private mutating func typeIndex(of type: String) -> Int {
            if last < types.count, types[last].name == type { return last }
            hasTextKeys = schema.index(of: type).map { schema.types[$0].keyKind == .text }
            if let found = types.firstIndex(where: { $0.name == type }) {
                last = found
            } else {
                types.append(TypeChanges(name: type))
                last = types.count - 1
            }
            return last
        }

        /// Returns the id of a delta. On the stream every id is a text. For a type that this
        /// version of the app does not have, a text that looks like an integer counts as one.
        private func recordID(of delta: Delta) throws -> RecordID {
            if hasTextKeys == true { return .text(delta.id) }
            if let number = Int64(delta.id), String(number) == delta.id { return .integer(number) }
            guard hasTextKeys == nil else {
                throw StoreError(
                    .inconsistent,
                    "The delta of \(delta.type) \(delta.id) at version \(delta.version) names no"
                        + " record: ids of \(delta.type) are integers.")
            }
            return .text(delta.id)
        }
    }
}
