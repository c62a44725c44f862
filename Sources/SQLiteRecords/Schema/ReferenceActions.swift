internal import MartletModel
package import SQLiteKit

/// Finds the actions of all tables' references if a row is deleted, and the cases in which they
/// return to the table of the row.
///
/// If an UPDATE OR REPLACE removes a row, and the removal changes a reference of the updated row,
/// SQLite breaks an index of the table ("database disk image is malformed"), or keeps a reference
/// to a row that is gone. SQLite 3.40.1 does so. A reference whose action deletes the updated row
/// does no harm, because nothing is updated then.
package struct ReferenceActions {
    private struct Reference {
        /// The folded names of the two tables.
        let child: String
        let parent: String
        var columns: [String]
        /// The referenced columns; nil for the key.
        var targets: [String?]
        let onDelete: String
        let onUpdate: String

        var isSetOnDelete: Bool { onDelete.hasPrefix("SET ") }
        var actsOnUpdate: Bool { onUpdate.hasPrefix("SET ") || onUpdate == "CASCADE" }
    }

    /// An event that an action causes.
    private enum Event: Hashable {
        /// Rows of the table are deleted.
        case deletion(String)
        /// The columns of this reference are changed, in rows of the table that holds it.
        case change(Int)
    }

    private struct Step {
        let from: Event
        let reference: Int
        let to: Event
    }

    private let references: [Reference]

    package init(_ connection: Connection) throws(SQLiteError) {
        let find = try connection.statement(
            """
            SELECT child.name, held.seq, held."table", held."from", held."to", held.on_delete, held.on_update \
            FROM main.sqlite_schema AS child JOIN pragma_foreign_key_list(child.name, 'main') AS held \
            WHERE child.type = 'table' ORDER BY child.rowid, held.id, held.seq
            """)
        var references: [Reference] = []
        _ = try find.rows { (row) throws(SQLiteError) in
            let target = row.isNull(4) ? nil : row.text(4)
            if row.integer(1) > 0, !references.isEmpty {
                references[references.count - 1].columns.append(row.text(3))
                references[references.count - 1].targets.append(target)
            } else {
                references.append(
                    Reference(
                        child: SQLName.folded(row.text(0)), parent: SQLName.folded(row.text(2)),
                        columns: [row.text(3)], targets: [target], onDelete: row.text(5),
                        onUpdate: row.text(6)))
            }
        }
        self.references = references
    }

    /// Returns the way in which the removal of a row of a table returns to references of other rows
    /// of the table; nil if it never does.
    func circle(of table: String, _ connection: Connection) throws(SQLiteError) -> RemovalCircle? {
        let own = SQLName.folded(table)
        let mayReturn = references.contains {
            $0.child == own && ($0.isSetOnDelete || $0.actsOnUpdate)
        }
        guard mayReturn else { return nil }
        var tables = Tables(connection: connection)
        var steps: [Step] = []
        var events: [Event] = [.deletion(own)]
        var index = 0
        while index < events.count {
            for step in try self.steps(from: events[index], &tables) {
                steps.append(step)
                if !events.contains(step.to) { events.append(step.to) }
            }
            index += 1
        }
        func returns(_ step: Step) -> Bool {
            if case .change(let reference) = step.to {
                references[reference].child == own
            } else {
                false
            }
        }
        var leading: Set<Event> = []
        while true {
            let more = steps.filter {
                !leading.contains($0.from) && (returns($0) || leading.contains($0.to))
            }
            if more.isEmpty { break }
            leading.formUnion(more.map(\.from))
        }
        guard !leading.isEmpty else { return nil }
        events.removeAll { !leading.contains($0) }
        var circle = RemovalCircle()
        for step in steps where leading.contains(step.from) {
            let (from, to) = (events.firstIndex(of: step.from), events.firstIndex(of: step.to))
            guard let from else { continue }
            let reference = references[step.reference]
            let parent = try tables[reference.parent]
            let pairs = zip(reference.targets, reference.columns).map { target, column in
                (target: SQLName.quoted(target ?? parent.key), column: SQLName.quoted(column))
            }
            if let to { try circle.add(from, parent, tables[reference.child], pairs, to) }
            if returns(step) { circle.addReturn(from, parent, pairs) }
        }
        return circle
    }

    private func steps(from event: Event, _ tables: inout Tables) throws(SQLiteError) -> [Step] {
        var steps: [Step] = []
        switch event {
        case .deletion(let table):
            for (index, reference) in references.enumerated() where reference.parent == table {
                if reference.onDelete == "CASCADE" {
                    steps.append(
                        Step(from: event, reference: index, to: .deletion(reference.child)))
                } else if reference.isSetOnDelete {
                    steps.append(Step(from: event, reference: index, to: .change(index)))
                }
            }
        case .change(let changed):
            let table = try tables[references[changed].child]
            let columns = table.computed.union(references[changed].columns.map(SQLName.folded))
            for (index, reference) in references.enumerated()
            where reference.parent == references[changed].child && reference.actsOnUpdate {
                let targets = reference.targets.map { SQLName.folded($0 ?? table.key) }
                guard !columns.isDisjoint(with: targets) else { continue }
                steps.append(Step(from: event, reference: index, to: .change(index)))
            }
        }
        return steps
    }

    /// The names of a table, of its key, and of its generated columns.
    fileprivate struct Table {
        var name = ""
        var key = ""
        /// The folded names of generated columns.
        var computed: Set<String> = []
    }

    private struct Tables {
        let connection: Connection
        private var known: [String: Table] = [:]

        init(connection: Connection) { self.connection = connection }

        subscript(folded: String) -> Table {
            mutating get throws(SQLiteError) {
                if let table = known[folded] { return table }
                let find = try connection.statement(
                    """
                    SELECT object.name, listed.name, listed.pk, listed.hidden FROM main.sqlite_schema AS object \
                    JOIN pragma_table_xinfo(object.name, 'main') AS listed \
                    WHERE object.type = 'table' AND object.name = ?1 COLLATE NOCASE
                    """)
                find.bind(1, text: folded)
                var table = Table()
                _ = try find.rows { (row) throws(SQLiteError) in
                    table.name = row.text(0)
                    if row.integer(2) > 0 { table.key = row.text(1) }
                    if row.integer(3) > 1 { table.computed.insert(SQLName.folded(row.text(1))) }
                }
                known[folded] = table
                return table
            }
        }
    }
}

/// A way by which the removal of a row changes references of other rows of its table, as SQL for a
/// trigger.
package struct RemovalCircle {
    /// The references of the updated row to which the removal may return.
    private var held: [String] = []
    private var steps: [String] = []
    private var returns: [String] = []

    /// Adds deletions or changes that lead to others.
    fileprivate mutating func add(
        _ from: Int, _ parent: ReferenceActions.Table, _ child: ReferenceActions.Table,
        _ pairs: [(target: String, column: String)], _ to: Int
    ) {
        let matches = pairs.map { "martlet_parent.\($0.target) = martlet_child.\($0.column)" }
        steps.append(
            """
            SELECT \(to), martlet_child.\(SQLName.quoted(child.key)) \(Self.reached(parent)) \
            CROSS JOIN \(SQLName.quoted(child.name)) AS martlet_child ON \(matches.joined(separator: " AND ")) \
            WHERE martlet_gone.event = \(from)
            """)
    }

    /// Adds deletions or changes that lead to the updated row, with its old or new values.
    fileprivate mutating func addReturn(
        _ from: Int, _ parent: ReferenceActions.Table, _ pairs: [(target: String, column: String)]
    ) {
        let matches = ["OLD", "NEW"].map { row in
            pairs.map { "martlet_parent.\($0.target) = \(row).\($0.column)" }.joined(
                separator: " AND ")
        }
        returns.append(
            """
            SELECT 1 \(Self.reached(parent)) \
            WHERE martlet_gone.event = \(from) AND (\(matches.joined(separator: " OR ")))
            """)
        for column in pairs.map(\.column) {
            held += ["OLD.\(column) IS NOT NULL", "NEW.\(column) IS NOT NULL"].filter {
                !held.contains($0)
            }
        }
    }

    /// Returns the join with the rows reached so far. The plus removes the affinity, because the
    /// ids belong to several tables.
    private static func reached(_ parent: ReferenceActions.Table) -> String {
        """
        FROM martlet_gone CROSS JOIN \(SQLName.quoted(parent.name)) AS martlet_parent \
        ON martlet_parent.\(SQLName.quoted(parent.key)) = +martlet_gone.id
        """
    }

    /// Returns a statement, for the body of a BEFORE UPDATE trigger, that refuses an update if it
    /// removes a row and the removal returns to the updated row. A trigger cannot tell UPDATE OR
    /// IGNORE apart, so that is refused as well.
    ///
    /// The rows are in the first part of the recursion: SQLite renames no column of a table in a
    /// trigger if the recursion uses a row from outside it.
    /// - Parameter conditions: Conditions for rows of the type's table that the update removes.
    func refusal(of type: EntityType, removing conditions: [String]) -> String {
        let first = conditions.map { condition in
            "SELECT 0, \(SQLName.quoted(type.key)) FROM \(SQLName.quoted(type.name)) AS martlet_row WHERE \(condition)"
        }
        return """
            SELECT RAISE(ABORT, 'martlet: this update would remove a row to which the updated row refers, itself or \
            by way of rows that go with it, which SQLite cannot do; take the unique value from the other row first')
                    WHERE (\(held.joined(separator: " OR "))) AND EXISTS (
                        WITH RECURSIVE martlet_gone(event, id) AS (
                            \((first + steps).joined(separator: "\n                UNION "))
                        ) \(returns.joined(separator: "\n            UNION ALL ")));
            """
    }
}
