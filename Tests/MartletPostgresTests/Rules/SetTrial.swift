import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit

/// A change set as statements of PostgreSQL, which tries them as the set's sender.
///
/// Decision 0269 differs from a transaction of PostgreSQL in two points. The records that a set changes or
/// deletes are judged in the state before the set, not in the one that its earlier statements leave: a
/// DELETE, and `SELECT … FOR UPDATE`, ask the same policies there. If an UPDATE then does not find its row
/// any more, PostgreSQL cannot judge the new row, so the judgement is open. And a set has the effects of ON
/// DELETE actions, which need no right: they are no statements.
struct SetTrial {
    typealias Key = JudgedServer.Key

    private struct Statement {
        let table: RandomRules.Table
        let id: RecordID
        /// The revision on which it is based.
        var base: Revision?
        var names: [String] = []
        var values: [Value] = []

        var key: Key { Key(type: table.name, id: id) }
        private var place: String { "\(table.sql) WHERE \(table.condition(id))" }

        /// Finds the record.
        var look: String { "SELECT 1 FROM \(place)" }
        var delete: String { "DELETE FROM \(place)" }

        /// Finds the record if it may be changed in its present state.
        var lock: String {
            "SELECT 1 FROM \(place)" + privileges("UPDATE").map { " AND \($0)" }.joined()
                + " FOR UPDATE"
        }

        var update: String? {
            guard !names.isEmpty else { return nil }
            let list = zip(names, values).map {
                "\(RandomRules.quoted($0)) = \(RandomRules.literal($1))"
            }
            return
                "UPDATE \(table.sql) SET \(list.joined(separator: ", ")) WHERE \(table.condition(id))"
        }

        /// Leaves out the values that a new record gets anyway: they need no privilege.
        mutating func omitDefaults() {
            let written = zip(names, values).filter { name, value in
                value != table.columns.first { $0.name == name }?.standard ?? .null
            }
            (names, values) = (written.map(\.0), written.map(\.1))
        }

        private var isText: Bool { table.keyKind == .text }
        private var givenNames: [String] { (isText ? [table.key] : []) + names }

        var insert: String {
            RandomRules.insertion((isText ? [id.value] : []) + values, givenNames, into: table)
        }

        /// Finds a row if there are the privileges to insert the record.
        var insertPrivilege: String {
            let rights =
                givenNames.isEmpty
                ? ["has_any_column_privilege(\(name), 'INSERT')"]
                : privileges("INSERT", of: givenNames)
            return "SELECT 1 WHERE \(rights.joined(separator: " AND "))"
        }

        private var name: String { RandomRules.literal(.text(table.sql)) }

        private func privileges(_ command: String, of names: [String]? = nil) -> [String] {
            (names ?? self.names).map {
                "has_column_privilege(\(name), \(RandomRules.literal(.text($0))), '\(command)')"
            }
        }
    }

    private let tables: [RandomRules.Table]
    private let seen: Revision
    private var creates: [Statement] = []
    private var updates: [Statement] = []
    private var deletes: [Statement] = []
    private var judgement = JudgedServer.Judgement()

    /// - Parameters:
    ///   - seen: The revision on which the set is based.
    ///   - created: The ids that the new records have, or would have.
    ///   - permanent: Returns the permanent id of another record; nil if it has none.
    init(
        _ set: ChangeSet, tables: [RandomRules.Table], seen: Revision, created: [Key: RecordID],
        _ permanent: (Key) -> RecordID?
    ) {
        self.tables = tables
        self.seen = seen
        for changes in set.types {
            guard let table = tables.first(where: { $0.name == changes.name }) else { continue }
            for id in changes.create + changes.update + changes.delete {
                let own = Key(type: table.name, id: id)
                guard let known = created[own] ?? permanent(own) else {
                    judgement.isLoose = true
                    continue
                }
                let entry = changes.entries.first { $0.id == id }
                var statement = Statement(table: table, id: known, base: entry?.revision)
                if changes.delete.contains(id) {
                    deletes.append(statement)
                    continue
                }
                statement.names = entry.map { Array($0.attributes.names) } ?? []
                statement.values = (entry.map { Array($0.attributes.values) } ?? [])
                for (index, name) in statement.names.enumerated() {
                    guard
                        let target = table.columns.first(where: { $0.name == name })?.target,
                        let id = RecordID(statement.values[index]), id.isTemporary
                    else { continue }
                    let key = Key(type: tables[target].name, id: id)
                    guard let known = created[key] ?? permanent(key) else {
                        judgement.isLoose = true
                        continue
                    }
                    statement.values[index] = known.value
                }
                if changes.create.contains(id) {
                    statement.omitDefaults()
                    creates.append(statement)
                } else {
                    updates.append(statement)
                }
            }
        }
        let written = creates + updates
        judgement.mayMove = tables.contains { table in
            table.columns.contains { column in
                column.isUnique
                    && written.contains {
                        $0.table.name == table.name && $0.names.contains(column.name)
                    }
                    && (written + deletes).filter { $0.table.name == table.name }.count > 1
            }
        }
    }

    /// Returns PostgreSQL's judgement.
    ///
    /// - Parameter changed: Returns the revision at which others last changed a record.
    func judgement(
        by viewer: Viewer, in reference: ReferenceDatabase, changed: (Key) -> Revision
    ) throws -> JudgedServer.Judgement {
        var judgement = judgement
        let affected = try affected(in: reference)
        let held = try held(in: reference)
        try reference.asPerson(viewer) {
            for statement in updates + deletes {
                if statement.base ?? seen < changed(statement.key) { judgement.isStale = true }
                if try reference.attempt(statement.look) != .rows(1) { judgement.isHidden = true }
            }
            for statement in affected where seen < changed(statement.key) {
                if try reference.attempt(statement.look) == .rows(1) { judgement.isStale = true }
            }
            let deleted = try deleted(in: reference, held)
            if deleted.count < deletes.count { judgement.isAllowed = false }
            let actions = Set(updates.filter { isAction($0, deleted, held) }.map(\.key))
            for update in updates where !actions.contains(update.key) {
                if try reference.attempt(update.lock) != .rows(1) { judgement.isAllowed = false }
            }
            for create in creates {
                if try reference.attempt(create.insertPrivilege) != .rows(1) {
                    judgement.isAllowed = false
                }
            }
            // The others do not leave rows.
            if judgement.isHidden || judgement.isStale || judgement.isLoose
                || judgement.isAllowed != true
            {
                return
            }
            try leave(viewer, reference, actions, &judgement)
        }
        // A new record may have the key of one that others made or deleted. It is judged last, so that a
        // key tells nothing to somebody who may not create the record.
        for create in creates where create.table.keyKind == .text && judgement.isAllowed == true {
            if seen < changed(create.key) { judgement.isStale = true }
        }
        return judgement
    }

    // MARK: - Effects of ON DELETE

    /// The records to which a record refers by a column.
    private typealias Held = [Key: [(column: RandomRules.Column, target: Key)]]

    /// Returns the references of the records that a set with deletes changes and deletes.
    private func held(in reference: ReferenceDatabase) throws -> Held {
        guard !deletes.isEmpty else { return [:] }
        var held: Held = [:]
        for statement in updates + deletes {
            for column in statement.table.columns {
                guard let target = column.target else { continue }
                let answer = try reference.connection.query(
                    """
                    SELECT \(column.sql)::text FROM \(statement.table.sql) \
                    WHERE \(statement.table.condition(statement.id)) AND \(column.sql) IS NOT NULL
                    """)
                guard answer.count == 1 else { continue }
                let id = tables[target].id(try answer.text(0, 0))
                held[statement.key, default: []].append(
                    (column, Key(type: tables[target].name, id: id)))
            }
        }
        return held
    }

    /// Returns the records that the set may delete: those for which the person has the right, and those
    /// that CASCADE deletes with them.
    private func deleted(in reference: ReferenceDatabase, _ held: Held) throws -> Set<Key> {
        var deleted: Set<Key> = []
        for statement in deletes {
            switch try reference.attempt(statement.delete) {
            case .rows(1), .violates: deleted.insert(statement.key)
            case .rows, .denied: break
            }
        }
        while true {
            let more = deletes.map(\.key).filter { key in
                !deleted.contains(key)
                    && held[key, default: []].contains {
                        $0.column.action == "CASCADE" && deleted.contains($0.target)
                    }
            }
            if more.isEmpty { return deleted }
            deleted.formUnion(more)
        }
    }

    /// Returns whether an update only empties references by SET NULL.
    private func isAction(_ update: Statement, _ deleted: Set<Key>, _ held: Held) -> Bool {
        !deleted.isEmpty && !update.names.isEmpty
            && zip(update.names, update.values).allSatisfy { name, value in
                value == .null
                    && held[update.key, default: []].contains {
                        $0.column.name == name && $0.column.action == "SET NULL"
                            && deleted.contains($0.target)
                    }
            }
    }

    /// Returns the records that ON DELETE actions of the set change or delete, and that it does not name.
    private func affected(in reference: ReferenceDatabase) throws -> [Statement] {
        let named = Set((updates + deletes).map(\.key))
        var affected: [Statement] = []
        var reached = Set(deletes.map(\.key))
        var queue = deletes
        while let parent = queue.popLast() {
            for table in tables {
                for column in table.columns {
                    guard let target = column.target, tables[target].name == parent.table.name,
                        ["CASCADE", "SET NULL"].contains(column.action)
                    else { continue }
                    let answer = try reference.connection.query(
                        """
                        SELECT \(table.sqlKey)::text FROM \(table.sql) \
                        WHERE \(column.sql) = \(RandomRules.literal(parent.id.value))
                        """)
                    for row in 0..<answer.count {
                        let child = Statement(table: table, id: table.id(try answer.text(row, 0)))
                        if !named.contains(child.key) { affected.append(child) }
                        if column.action == "CASCADE", reached.insert(child.key).inserted {
                            queue.append(child)
                        }
                    }
                }
            }
        }
        return affected
    }

    // MARK: - The rows that the set leaves

    /// Carries out the set's INSERTs, then its UPDATEs, then its DELETEs.
    private func leave(
        _ viewer: Viewer, _ reference: ReferenceDatabase, _ actions: Set<Key>,
        _ judgement: inout JudgedServer.Judgement
    ) throws {
        for (index, create) in creates.enumerated() {
            if case .integer(let id) = create.id { try reference.setNextID(id) }
            switch try reference.attempt(create.insert, isKept: true) {
            case .rows: continue
            case .denied: judgement.isAllowed = false
            case .violates:
                judgement.violates = true
                judgement.isTaken = create.table.keyKind == .text
                judgement.isCut = index + 1 < creates.count || !updates.isEmpty
            }
            return
        }
        for (index, update) in updates.enumerated() {
            guard let sql = update.update else { continue }
            let isAction = actions.contains(update.key)
            if isAction { try reference.become(nil) }
            let outcome = try reference.attempt(sql, isKept: true)
            if isAction { try reference.become(viewer) }
            switch outcome {
            case .rows(1): continue
            case .rows: judgement.isAllowed = nil
            case .denied: judgement.isAllowed = false
            case .violates:
                judgement.violates = true
                judgement.isCut = index + 1 < updates.count
            }
            return
        }
        try reference.become(nil)
        judgement.violates = try !delete(deletes, reference)
        if !judgement.violates {
            judgement.violates = try reference.attempt("SET CONSTRAINTS ALL IMMEDIATE") == .violates
        }
    }

    /// Deletes records in an order that RESTRICT allows.
    /// - Returns: Whether there is one.
    private func delete(_ statements: [Statement], _ reference: ReferenceDatabase) throws -> Bool {
        var rest = statements
        while !rest.isEmpty {
            let count = rest.count
            rest = try rest.filter {
                try reference.attempt($0.delete, isKept: true) == .violates
            }
            if rest.count == count { return false }
        }
        return true
    }
}
