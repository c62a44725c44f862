package import MartletModel
package import MartletProtocol

extension SetPlan {
    /// Reads a set as a device sent it.
    ///
    /// - Throws: `Refusal` of reason `invalid`, `unknownType` or `unknownAttribute` if no state of
    ///   the data set could accept the set.
    /// - Complexity: O(*n*) in the attributes of the set's records.
    package init(
        _ set: ChangeSet, schema: Schema, checks: ValueChecks
    ) throws(Refusal) {
        self.init()
        if let defect = set.defect { throw Refusal(.invalid, defect) }
        if let seen = set.seen, seen < 0 {
            throw Refusal(.invalid, "“seen” is negative; expected a revision")
        }
        for changes in set.types {
            guard let position = schema.index(of: changes.name) else {
                throw Refusal(.unknownType, "the server has no type “\(changes.name)”")
            }
            guard !types.contains(position) else {
                throw Refusal(.invalid, "type “\(changes.name)” is listed more than once")
            }
            types.append(position)
            try read(changes, as: position, schema.types[position], checks)
        }
        guard !creates.isEmpty || !updates.isEmpty || !deletes.isEmpty else {
            throw Refusal(.invalid, "the set names no record")
        }
        collectTemporaries(schema)
    }

    private mutating func read(
        _ changes: TypeChanges, as position: Int, _ type: EntityType, _ checks: ValueChecks
    ) throws(Refusal) {
        var entries: [RecordID: Int] = [:]
        entries.reserveCapacity(changes.entries.count)
        for (index, entry) in changes.entries.enumerated() {
            guard entries.updateValue(index, forKey: entry.id) == nil else {
                throw Refusal(.invalid, "a record of “\(type.name)” has attributes twice")
            }
        }
        var named: Set<RecordID> = []
        func name(_ id: RecordID) throws(Refusal) -> RecordEntry? {
            if let mismatch = checks.id(id, type) {
                throw Refusal(.invalid, "in “\(type.name)”: \(mismatch)")
            }
            guard named.insert(id).inserted else {
                throw Refusal(.invalid, "a record of “\(type.name)” is named twice in the set")
            }
            return entries[id].map { changes.entries[$0] }
        }
        var context = AttributeContext(type: type, checks: checks)
        for id in changes.create {
            let entry = try name(id)
            if case .integer(let number) = id, number > 0 {
                throw Refusal(
                    .invalid,
                    """
                    a new record of “\(type.name)” has a permanent id; new records have negative \
                    ids until the server gives them one
                    """)
            }
            guard entry?.revision == nil else {
                throw Refusal(.invalid, "a new record of “\(type.name)” has a revision")
            }
            creates.append(
                Change(
                    type: position, id: id, base: nil, attributes: try context.checked(entry)))
        }
        for id in changes.update {
            let entry = try name(id)
            // For a record that the device itself created, `seen` is enough.
            guard entry?.revision != nil || id.isTemporary else {
                throw Refusal(
                    .invalid,
                    """
                    an update of “\(type.name)” does not say which revision of the record it is \
                    based on
                    """)
            }
            var base: Revision?
            if let revision = entry?.revision { base = try context.checked(revision) }
            updates.append(
                Change(
                    type: position, id: id, base: base, attributes: try context.checked(entry)))
        }
        for id in changes.delete {
            let entry = try name(id)
            if let entry, !entry.attributes.isEmpty {
                throw Refusal(.invalid, "a deleted record of “\(type.name)” has attributes")
            }
            var base: Revision?
            if let revision = entry?.revision { base = try context.checked(revision) }
            deletes.append(Change(type: position, id: id, base: base, attributes: Attributes()))
        }
        guard entries.keys.allSatisfy(named.contains) else {
            throw Refusal(
                .invalid,
                "“\(type.name)” has attributes for a record in none of its three lists")
        }
    }

    private mutating func collectTemporaries(_ schema: Schema) {
        var created: Set<RecordAddress> = []
        for create in creates where create.id.isTemporary { created.insert(create.address) }
        var wanted: Set<RecordAddress> = []
        func want(_ address: RecordAddress) {
            guard address.id.isTemporary, !created.contains(address),
                wanted.insert(address).inserted
            else { return }
            earlierTemporaries.append(address)
        }
        for change in updates { want(change.address) }
        for change in deletes { want(change.address) }
        for change in creates + updates {
            for reference in schema.types[change.type].references {
                guard case .integer(let number)? = change.attributes[reference.attribute],
                    number < 0, let target = schema.index(of: reference.target)
                else { continue }
                want(RecordAddress(target, .integer(number)))
            }
        }
    }
}

/// Checks the attributes of one type's records. It checks a list of names again only if it differs
/// from the last record's.
private struct AttributeContext {
    let type: EntityType
    let checks: ValueChecks
    private var names: [String] = []
    private var attributes: [Attribute] = []

    init(type: EntityType, checks: ValueChecks) {
        self.type = type
        self.checks = checks
    }

    mutating func checked(_ entry: RecordEntry?) throws(Refusal) -> Attributes {
        guard let entry else { return Attributes() }
        guard entry.oldID == nil else {
            throw Refusal(.invalid, "a record of “\(type.name)” has “__oldId__”, a word of answers")
        }
        if entry.attributes.names != names {
            attributes = try known(entry.attributes.names)
            names = entry.attributes.names
        }
        for (index, value) in entry.attributes.values.enumerated() {
            if let mismatch = checks.value(value, attributes[index], type) {
                throw Refusal(
                    .invalid, "in “\(type.name)”, “\(attributes[index].name)”: \(mismatch)")
            }
        }
        return entry.attributes
    }

    func checked(_ revision: Revision) throws(Refusal) -> Revision {
        guard revision >= 0 else {
            throw Refusal(.invalid, "a record of “\(type.name)” has a negative revision")
        }
        return revision
    }

    private func known(_ names: [String]) throws(Refusal) -> [Attribute] {
        var attributes: [Attribute] = []
        attributes.reserveCapacity(names.count)
        for name in names {
            guard let attribute = type[attribute: name] else {
                if name == type.key {
                    throw Refusal(
                        .invalid,
                        "“\(name)” is the key of “\(type.name)”, which is not an attribute")
                }
                if ReservedWords.attributes.contains(name)
                    || name.hasPrefix(ReservedWords.prefix)
                {
                    throw Refusal(.invalid, "“\(name)” is a word of the wire, not an attribute")
                }
                throw Refusal(
                    .unknownAttribute, "type “\(type.name)” has no attribute “\(name)”")
            }
            guard !attribute.isGenerated else {
                throw Refusal(
                    .invalid,
                    "“\(name)” of “\(type.name)” is computed by the database, never written")
            }
            attributes.append(attribute)
        }
        return attributes
    }
}
