import MartletModel
import MartletProtocol
internal import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Puts rows into the log that the tables got without it: rows from before Martlet, and the values
/// that a new column gave to old rows. The log then leads to the tables' state again.
struct Adoption {
    /// The most records in one entry, unless references need more.
    static let recordsPerSet = 1_000
    /// The bytes of records after which an entry ends.
    private static let bytesPerSet = 1 << 20

    let session: EmbeddedSession
    let now: Int64

    // MARK: - Rows

    /// Enters all rows of the types, parents before children. Records that refer to each other in a
    /// circle are in one entry, together with the records that refer to them.
    func adopt(types: [Int]) throws {
        for group in groups(of: types) {
            if group.count == 1, let type = group.first, !refersToItself(type) {
                try adoptFlat(type)
            } else {
                try adoptLinked(group)
            }
        }
    }

    private func adoptFlat(_ type: Int) throws {
        var pending: [(RecordAddress, Attributes)] = []
        var bytes = 0
        try session.tables[type].forEach(unsendable: { throw unsendable(type, $0, $1) }) {
            id, row in
            try check(id, type)
            pending.append((RecordAddress(type, id), row))
            bytes += row.wireByteCount
            if pending.count == Self.recordsPerSet || bytes >= Self.bytesPerSet {
                try enter(created: pending)
                (pending, bytes) = ([], 0)
            }
        }
        try enter(created: pending)
    }

    private func adoptLinked(_ types: [Int]) throws {
        var rows: [RecordAddress: Attributes] = [:]
        var order = LinkOrder()
        for type in types {
            try session.tables[type].forEach(unsendable: { throw unsendable(type, $0, $1) }) {
                id, row in
                try check(id, type)
                let address = RecordAddress(type, id)
                rows[address] = row
                order.add(address, parents: parents(of: address, row))
            }
        }
        let (free, bound) = order.sorted()
        for start in stride(from: 0, to: free.count, by: Self.recordsPerSet) {
            let part = free[start..<min(start + Self.recordsPerSet, free.count)]
            try enter(created: part.map { ($0, rows[$0] ?? Attributes()) })
        }
        try enter(created: bound.map { ($0, rows[$0] ?? Attributes()) })
    }

    private func parents(of address: RecordAddress, _ row: Attributes) -> [RecordAddress] {
        session.columns[address.type].references.compactMap { attribute, target in
            row[attribute].flatMap { RecordID($0) }.map { RecordAddress(target, $0) }
        }
    }

    private func unsendable(_ type: Int, _ id: RecordID, _ error: SQLiteError) -> SchemaError {
        SchemaError(
            """
            table “\(session.schema.types[type].name)” has a row that no device can be sent, with the \
            key \(id): \(error.message); correct it
            """)
    }

    /// Refuses ids that no record may have: negative ids are temporary, zero is no id, and the
    /// greatest would leave none for new records.
    private func check(_ id: RecordID, _ type: Int) throws(SchemaError) {
        guard case .integer(let number) = id, !(1...Limits.greatestKey ~= number) else { return }
        let what =
            number <= 0 ? "is not positive" : "is greater than \(Limits.greatestKey)"
        throw SchemaError(
            """
            table “\(session.schema.types[type].name)” has a row whose key \(what); renumber it
            """)
    }

    /// Enters records as created, in several entries if one would be too long to be sent.
    private func enter(created: [(address: RecordAddress, row: Attributes)]) throws {
        guard !created.isEmpty else { return }
        let parts = EntryParts.of(created) { record in
            40 + record.address.id.wireByteCount + record.row.wireByteCount
        }
        for part in parts { try enter(part: created[part]) }
    }

    private func enter(part created: ArraySlice<(address: RecordAddress, row: Attributes)>) throws {
        var types: [Int] = []
        for (address, _) in created where !types.contains(address.type) {
            types.append(address.type)
        }
        var account = SetEffects(types: types)
        let revision = try session.nextRevision()
        for (address, row) in created {
            account.set(address, .created, session.columns[address.type].withoutNulls(row))
            try session.store(RowFacts(revision: revision, author: 0, others: 0), of: address)
            if case .integer(let id) = address.id {
                session.skipIDs(of: address.type, through: id)
            }
        }
        try enter(account.changeSet(session.schema, revision: revision).set, revision)
    }

    private func enter(_ set: ChangeSet, _ revision: Revision) throws {
        let body = try SyncCoder.encode(set)
        let entry = LogEntry(
            revision: revision, device: 0, identifier: nil, sequence: nil, temporaries: nil,
            body: body, hash: session.head.hash.appending(body, identifier: nil), time: now)
        try session.append(entry, content: nil, now: now)
    }

    // MARK: - Types in order

    private func refersToItself(_ type: Int) -> Bool {
        session.columns[type].references.contains { $0.target == type }
    }

    /// Returns the types in groups, each after the groups to which it refers. Types that refer to
    /// each other in a circle share a group (Tarjan's strongly connected components).
    private func groups(of types: [Int]) -> [[Int]] {
        let wanted = Set(types)
        var components = TypeComponents { type in
            session.columns[type].references.map(\.target).filter(wanted.contains)
        }
        for type in types { components.visit(type) }
        return components.found
    }

    // MARK: - Columns

    /// Enters the values that new columns gave to existing rows. The rows keep their revisions:
    /// nothing else of them changed, and no edit that waits on a device becomes stale.
    func announceColumns(added: [Int: [String]]) throws {
        for (type, names) in added.sorted(by: { $0.key < $1.key }) {
            var pending: [RecordEntry] = []
            var bytes = 0
            // A row that devices cannot receive is not announced.
            try session.tables[type].forEach(unsendable: { _, _ in }) { id, row in
                var attributes = Attributes()
                for name in names {
                    if let value = row[name], value != .null { attributes[name] = value }
                }
                guard !attributes.isEmpty else { return }
                let facts = try session.rowFacts(RecordAddress(type, id))
                pending.append(
                    RecordEntry(id: id, revision: facts?.revision, attributes: attributes))
                bytes += attributes.wireByteCount
                if pending.count == Self.recordsPerSet || bytes >= Self.bytesPerSet {
                    try enter(updated: pending, of: type)
                    (pending, bytes) = ([], 0)
                }
            }
            try enter(updated: pending, of: type)
        }
    }

    private func enter(updated: [RecordEntry], of type: Int) throws {
        guard !updated.isEmpty else { return }
        let revision = try session.nextRevision()
        for record in updated {
            try session.announce(RecordAddress(type, record.id), at: revision)
        }
        var set = ChangeSet(
            types: [
                TypeChanges(
                    name: session.schema.types[type].name, update: updated.map(\.id),
                    entries: updated)
            ])
        set.revision = revision
        try enter(set, revision)
    }
}

/// Tarjan's algorithm over the references between types. Its depth is at most the number of types.
package struct TypeComponents {
    /// The types in groups, each after the groups to which it refers.
    package private(set) var found: [[Int]] = []
    private var indexes: [Int: Int] = [:]
    private var lowest: [Int: Int] = [:]
    private var stack: [Int] = []
    private let targets: (Int) -> [Int]

    package init(_ targets: @escaping (Int) -> [Int]) {
        self.targets = targets
    }

    /// Adds a type, and the types to which it refers.
    package mutating func visit(_ type: Int) {
        guard indexes[type] == nil else { return }
        let index = indexes.count
        indexes[type] = index
        lowest[type] = index
        stack.append(type)
        for target in targets(type) {
            if indexes[target] == nil {
                visit(target)
                lowest[type] = min(lowest[type] ?? index, lowest[target] ?? index)
            } else if stack.contains(target) {
                lowest[type] = min(lowest[type] ?? index, indexes[target] ?? index)
            }
        }
        guard lowest[type] == index, let start = stack.firstIndex(of: type) else { return }
        found.append(Array(stack[start...]))
        stack.removeSubrange(start...)
    }
}
