import MartletModel
import MartletServerCore
import PostgresKit

/// The statements that carry out one set, and the purpose of each.
///
/// Keys are known before the first statement runs, so all go in one round trip. Parents are created
/// before the records that refer to them and deleted after them, because foreign keys that are not
/// deferrable are checked with every statement.
struct SetSteps {
    /// The purpose of a statement.
    enum Purpose {
        /// It returns nothing that matters.
        case none
        /// It returns whole rows of new records.
        case created(type: Int)
        /// It returns changed rows: the key, and these attributes.
        case changed(type: Int, names: [String])
        /// It returns the keys of the named records that exist.
        case looked(type: Int)
        /// It returns complete rows at the end of the set.
        case current(type: Int)
        /// It returns the session's settings.
        case settings
    }

    /// The changes of one type with one list of attributes.
    private struct Group {
        let type: Int
        let names: [String]
        var ids: [RecordID] = []
        var records: [Attributes] = []
    }

    /// Groups a set's creates, or its updates.
    private struct Groups {
        private struct Form: Hashable {
            let type: Int
            let names: [String]
        }

        private(set) var all: [Group] = []
        private var indices: [Form: Int] = [:]

        /// Adds a record to the group of its type and attributes.
        /// - Returns: The group's index.
        mutating func add(_ id: RecordID, _ attributes: Attributes, _ type: Int) -> Int {
            let form = Form(type: type, names: attributes.names)
            let index = indices[form] ?? all.count
            if index == all.count {
                indices[form] = index
                all.append(Group(type: type, names: attributes.names))
            }
            all[index].ids.append(id)
            all[index].records.append(attributes)
            return index
        }
    }

    private let session: DataSetSession
    private let plan: SetPlan
    private let facts: SetFacts
    private let assigned: [RecordAddress: RecordID]
    /// Whether no other set is in the same round trip. The set then ends with a check of what it
    /// would leave to the commit and to the session.
    private let isAlone: Bool
    /// Whether the statements return only the session's settings, after each write.
    private let isProbe: Bool
    private var writes = 0
    private(set) var statements: [PostgresStatement] = []
    private(set) var purposes: [Purpose] = []

    /// Makes the statements of a set.
    /// - Parameters:
    ///   - assigned: The permanent ids of the records that the set creates.
    ///   - savepoint: The savepoint under which the set is carried out.
    ///   - limit: The milliseconds that a statement may take; nil for the usual time.
    init(
        _ session: DataSetSession, _ plan: SetPlan, _ facts: SetFacts,
        assigned: [RecordAddress: RecordID], savepoint: String, captures: Bool, parking: Bool,
        limit: Int64?, isProbe: Bool = false
    ) {
        self.session = session
        self.plan = plan
        self.facts = facts
        self.assigned = assigned
        self.isProbe = isProbe
        isAlone = captures || session.isCareful || isProbe
        add(PostgresStatement("SAVEPOINT \(savepoint)"))
        if let limit { add(Self.timeLimit("\(limit)")) }
        if captures { add(RowsBehind.start) }
        if parking { for statement in parked() { addWrite(statement) } }
        addCreates()
        addUpdates()
        addDeletes()
        if !plan.deletes.isEmpty, !isProbe { addCurrent() }
        // The user's triggers may also write to tables with deferred constraints. At the commit,
        // these constraints would fail all sets of the batch.
        if isDeferring || isAlone {
            add(PostgresStatement("SET CONSTRAINTS ALL IMMEDIATE"))
            add(PostgresStatement("SET CONSTRAINTS ALL DEFERRED"))
        }
        if limit != nil, let usual = session.settings?["statement_timeout"] {
            add(Self.timeLimit(usual))
        }
        if isAlone { add(SessionSettings.reading, .settings) }
    }

    private static func timeLimit(_ limit: String) -> PostgresStatement {
        PostgresStatement(
            "SELECT set_config('statement_timeout', $1::text, true)", [.text(limit)])
    }

    private mutating func add(_ statement: PostgresStatement, _ purpose: Purpose = .none) {
        statements.append(statement)
        purposes.append(purpose)
    }

    /// Adds a statement that may run triggers. The effect of later statements depends on the
    /// settings that these leave.
    private mutating func addWrite(_ statement: PostgresStatement, _ purpose: Purpose = .none) {
        if isAlone, writes > 0 { add(SessionSettings.reading, .settings) }
        writes += 1
        if isProbe {
            // The statement returns no text, because the encoding might lack its characters.
            add(PostgresStatement("WITH w AS (\(statement.sql)) SELECT 1", statement.values))
        } else {
            add(statement, purpose)
        }
    }

    /// Whether constraints are checked only at the end of the set.
    private var isDeferring: Bool {
        let deferring = session.model.deferring
        guard !deferring.isEmpty else { return false }
        return plan.types.contains { deferring.contains($0) }
            || facts.affected.contains { deferring.contains($0.address.type) }
    }

    // MARK: - Creates

    private mutating func addCreates() {
        var groups = Groups()
        var groupOf: [RecordAddress: Int] = [:]
        for create in plan.creates {
            let id = assigned[create.address] ?? create.id
            let attributes = session.resolved(create, assigned: assigned, facts)
            groupOf[RecordAddress(create.type, id)] = groups.add(id, attributes, create.type)
        }
        for index in parentsFirst(groups.all, groupOf) {
            let group = groups.all[index]
            addWrite(
                session.model.forms[group.type].creating(group.ids, group.names, group.records),
                .created(type: group.type))
        }
    }

    /// Returns the groups with parents first. Groups that refer to each other in a circle keep the
    /// set's order.
    private func parentsFirst(_ groups: [Group], _ groupOf: [RecordAddress: Int]) -> [Int] {
        guard groups.count > 1 else { return Array(groups.indices) }
        var parents = groups.map { _ in Set<Int>() }
        for (position, group) in groups.enumerated() {
            for (attribute, target) in session.model.forms[group.type].columns.references {
                guard let index = group.names.firstIndex(of: attribute) else { continue }
                for record in group.records {
                    guard let id = RecordID(record.values[index]),
                        let parent = groupOf[RecordAddress(target, id)], parent != position
                    else { continue }
                    parents[position].insert(parent)
                }
            }
        }
        return Self.ordered(parents)
    }

    /// Orders indices so that each follows its parents.
    /// - Parameter parents: The predecessors of each index.
    /// - Returns: The indices, each after its parents. Indices in a circle keep their order.
    /// - Complexity: O(*n*), *n* steps and parents, since each set of parents is read twice.
    static func ordered<Parents: RandomAccessCollection>(_ parents: Parents) -> [Int]
    where Parents.Element == Set<Int>, Parents.Index == Int {
        var children = Array(repeating: [Int](), count: parents.count)
        var waiting = parents.map(\.count)
        for (index, parents) in parents.enumerated() {
            for parent in parents { children[parent].append(index) }
        }
        var isDone = Array(repeating: false, count: parents.count)
        var free = (0..<parents.count).reversed().filter { waiting[$0] == 0 }
        var bound = 0
        var order: [Int] = []
        order.reserveCapacity(parents.count)
        while order.count < parents.count {
            while bound < parents.count, isDone[bound] { bound += 1 }
            // If all other indices wait, the first of them breaks the circle.
            let next = free.popLast() ?? bound
            guard !isDone[next] else { continue }
            isDone[next] = true
            order.append(next)
            for child in children[next].reversed() {
                waiting[child] -= 1
                if waiting[child] == 0, !isDone[child] { free.append(child) }
            }
        }
        return order
    }

    // MARK: - Updates and deletes

    private mutating func addUpdates() {
        var groups = Groups()
        for update in plan.updates {
            let attributes = session.resolved(update, assigned: assigned, facts)
            _ = groups.add(
                facts.permanentAddress(of: update.address).id, attributes, update.type)
        }
        for group in groups.all {
            let form = session.model.forms[group.type]
            if group.names.isEmpty {
                add(
                    form.locking(
                        group.ids, isDelete: false, skips: false, isVersioned: false),
                    .looked(type: group.type))
            } else {
                addWrite(
                    form.changing(group.ids, group.names, group.records),
                    .changed(type: group.type, names: group.names + form.columns.generated))
            }
        }
    }

    private mutating func addDeletes() {
        var ids: [Int: [RecordID]] = [:]
        for delete in plan.deletes {
            ids[delete.type, default: []].append(facts.permanentAddress(of: delete.address).id)
        }
        let parts = ids.sorted { $0.key < $1.key }
        // Children go before their parents.
        var children = parts.map { _ in Set<Int>() }
        for (index, (type, _)) in parts.enumerated() {
            for (_, target) in session.model.forms[type].columns.references {
                guard let parent = parts.firstIndex(where: { $0.key == target }), parent != index
                else { continue }
                children[parent].insert(index)
            }
        }
        for index in Self.ordered(children) {
            let (type, ids) = parts[index]
            addWrite(session.model.forms[type].deleting(ids))
        }
    }

    /// Reads the rows that ON DELETE actions may have changed: the records known to be affected,
    /// and the records that the set itself created.
    private mutating func addCurrent() {
        var ids: [Int: Set<RecordID>] = [:]
        for row in facts.affected { ids[row.address.type, default: []].insert(row.address.id) }
        for create in plan.creates {
            ids[create.type, default: []].insert(assigned[create.address] ?? create.id)
        }
        for (type, ids) in ids.sorted(by: { $0.key < $1.key }) {
            add(session.model.forms[type].reading(Array(ids)), .current(type: type))
        }
    }
}

// MARK: - Unique values

extension SetSteps {
    /// Replaces unique values temporarily, so that a set may swap them between records, or delete a
    /// record and create another with the same value.
    ///
    /// PostgreSQL checks a unique index with each row. Of each list of unique columns, one is
    /// replaced: by NULL if the column allows it, else by a value that no record has. The set
    /// writes every replaced value again, or deletes its record.
    private func parked() -> [PostgresStatement] {
        var parking = Parking(forms: session.model.forms)
        for change in plan.updates {
            let type = session.model.forms[change.type].type
            let id = facts.permanentAddress(of: change.address).id
            for unique in type.uniques {
                parking.park(id, unique.filter { change.attributes[$0] != nil }, change.type)
            }
        }
        for change in plan.deletes {
            let type = session.model.forms[change.type].type
            let id = facts.permanentAddress(of: change.address).id
            for unique in type.uniques { parking.park(id, unique, change.type) }
        }
        return parking.statements()
    }
}

private struct Parking {
    private struct ParkedColumn: Hashable {
        let type: Int
        let attribute: String
    }

    let forms: [TableFormat]
    private var parked: [ParkedColumn: (ids: [RecordID], values: [Attributes])] = [:]
    private var number: Int64 = 0

    init(forms: [TableFormat]) {
        self.forms = forms
    }

    mutating func park(_ id: RecordID, _ columns: [String], _ type: Int) {
        let candidates = columns.compactMap { forms[type].type[attribute: $0] }
            .filter { !$0.isGenerated }
        guard let chosen = candidates.first(where: { !$0.isRequired }) ?? candidates.first,
            let column = forms[type].column(chosen.name)
        else { return }
        number += 1
        guard let value = chosen.isRequired ? Self.spare(column.form, number) : .null else {
            return
        }
        let key = ParkedColumn(type: type, attribute: chosen.name)
        parked[key, default: ([], [])].ids.append(id)
        parked[key]?.values.append(Attributes(names: [chosen.name], values: [value]))
    }

    /// Returns a value that no record has; nil for types without one.
    private static func spare(_ form: ColumnCodec, _ number: Int64) -> Value? {
        switch form {
        case .integer(let bytes): .integer(-(Int64(1) << (Int64(bytes) * 8 - 2)) - number)
        case .real, .double: .real(-1e30 - Double(number) * 1e25)
        case .numeric, .text: .text(form == .text ? "\u{1}martlet \(number)" : "-9\(number)e9")
        default: nil
        }
    }

    func statements() -> [PostgresStatement] {
        let order = parked.sorted {
            ($0.key.type, $0.key.attribute) < ($1.key.type, $1.key.attribute)
        }
        return order.map { key, rows in
            forms[key.type].changing(rows.ids, [key.attribute], rows.values)
        }
    }
}
