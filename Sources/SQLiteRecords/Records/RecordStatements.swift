internal import MartletModel
internal import SQLiteKit

/// The statements that read and write some attributes of one table, one for each list of names.
///
/// The writer of the records decides which lists occur, so the number of stored statements is
/// bounded.
final class RecordStatements {
    let type: EntityType
    let table: String
    /// The key with the table's name, as conditions and lists of columns have it.
    let key: String
    /// The condition that a row is the record whose id is the first parameter. Text ids are equal
    /// if their bytes are, whatever the column's collation says.
    let isRecord: String
    /// The text after the word INSERT or UPDATE.
    let conflict: String
    let all: ColumnList
    let allColumns: String
    private let connection: Connection
    /// See `RecordTable.ownColumns`.
    var ownColumns: Set<String> = [] {
        didSet {
            plans.removeAll()
            last = Verb.allCases.map { _ in nil }
        }
    }
    private var plans: [Shape: RecordPlan] = [:]
    /// The last plan of each verb.
    private var last: [(names: [String], plan: RecordPlan)?]
    private static let capacity = 64

    /// The values that determine a statement's text.
    private struct Shape: Hashable {
        let verb: Verb
        let names: [String]
    }

    private enum Verb: Int, CaseIterable {
        case insertNulls
        case insertDefaults
        case update
        case select
    }

    init(type: EntityType, connection: Connection, keepsClauses: Bool, replaces: Bool) {
        self.type = type
        self.connection = connection
        last = Verb.allCases.map { _ in nil }
        table = SQLName.quoted(type.name)
        key = SQLName.list([type.key], of: type.name)
        isRecord =
            switch type.keyKind {
            case .integer: "\(key) = ?1"
            // The first comparison uses the index with the column's collation; the second compares
            // bytes.
            case .text: "\(key) = ?1 AND \(key) = ?1 COLLATE BINARY"
            }
        conflict =
            replaces ? " OR REPLACE" : type.hasConflictClause && !keepsClauses ? " OR ABORT" : ""
        all = ColumnList(type.attributes)
        // A table that consists only of a key is read by a constant.
        allColumns = type.attributes.isEmpty ? "1" : SQLName.list(all.names, of: type.name)
    }

    func insertion(_ names: [String], absentMeansNull: Bool) throws(SQLiteError) -> RecordPlan {
        let verb = absentMeansNull ? Verb.insertNulls : .insertDefaults
        if let plan = known(verb, names) { return plan }
        let (given, bindings) = try writable(names)
        var columns = given
        if absentMeansNull {
            // A parameter without a value is NULL. If the column allows no NULL, the record is
            // older than the column, and gets its default, as the others did when the column was
            // added.
            columns += type.attributes.filter {
                !$0.isGenerated && !($0.isRequired && $0.hasDefault) && !given.contains($0.name)
                    && !ownColumns.contains($0.name)
            }.map(\.name)
        }
        let parameters = (1...(columns.count + 1)).map { "?\($0)" }.joined(separator: ", ")
        let sql = """
            INSERT\(conflict) INTO \(table) (\(SQLName.list([type.key] + columns))) VALUES (\(parameters))
            """
        return keep(
            RecordPlan(statement: try connection.prepare(sql), bindings: bindings), verb, names)
    }

    /// Returns the plan of an update; nil if nothing would be written.
    func change(_ names: [String]) throws(SQLiteError) -> RecordPlan? {
        guard !names.isEmpty else { return nil }
        if let plan = known(.update, names) { return plan }
        let (columns, bindings) = try writable(names)
        guard !columns.isEmpty else { return nil }
        let settings = columns.enumerated().map { "\(SQLName.quoted($1)) = ?\($0 + 2)" }
        let sql =
            "UPDATE\(conflict) \(table) SET \(settings.joined(separator: ", ")) WHERE \(isRecord)"
        return keep(
            RecordPlan(statement: try connection.prepare(sql), bindings: bindings), .update, names)
    }

    /// Returns the plan that reads the named attributes.
    /// - Precondition: There are names.
    func selection(_ names: [String]) throws(SQLiteError) -> RecordPlan {
        if let plan = known(.select, names) { return plan }
        let columns = try names.map { (name) throws(SQLiteError) in try attribute(name) }
        let list = SQLName.list(columns.map(\.name), of: type.name)
        let sql = "SELECT \(list) FROM \(table) WHERE \(isRecord)"
        let plan = RecordPlan(
            statement: try connection.prepare(sql), columns: ColumnList(columns))
        return keep(plan, .select, names)
    }

    private func attribute(_ name: String) throws(SQLiteError) -> Attribute {
        guard let attribute = type[attribute: name] else {
            throw SQLiteError.mismatch("type “\(type.name)” has no attribute “\(name)”")
        }
        return attribute
    }

    /// Returns the columns among `names` that can be written, and the positions of their values in
    /// the list.
    private func writable(
        _ names: [String]
    ) throws(SQLiteError) -> (columns: [String], bindings: [RecordPlan.Binding]) {
        var columns: [String] = []
        var bindings: [RecordPlan.Binding] = []
        for (position, name) in names.enumerated() {
            let attribute = try attribute(name)
            guard !attribute.isGenerated else { continue }
            columns.append(attribute.name)
            bindings.append(RecordPlan.Binding(position: position, kind: attribute.kind))
        }
        return (columns, bindings)
    }

    private func known(_ verb: Verb, _ names: [String]) -> RecordPlan? {
        // Records of one type mostly share one list of names, so this comparison is one of two
        // pointers.
        if let last = last[verb.rawValue], last.names == names { return last.plan }
        guard let plan = plans[Shape(verb: verb, names: names)] else { return nil }
        last[verb.rawValue] = (names, plan)
        return plan
    }

    private func keep(_ plan: RecordPlan, _ verb: Verb, _ names: [String]) -> RecordPlan {
        if plans.count >= Self.capacity { plans.removeAll() }
        plans[Shape(verb: verb, names: names)] = plan
        last[verb.rawValue] = (names, plan)
        return plan
    }
}

/// A statement that reads or writes records with one list of names.
final class RecordPlan {
    struct Binding {
        /// The position of the value among the given ones.
        let position: Int
        let kind: AttributeKind
    }

    let statement: Statement
    let bindings: [Binding]
    /// The columns that the statement reads.
    let columns: ColumnList

    init(
        statement: Statement, bindings: [Binding] = [],
        columns: ColumnList = ColumnList()
    ) {
        self.statement = statement
        self.bindings = bindings
        self.columns = columns
    }

    func bind(_ attributes: Attributes, from first: Int32) {
        var index = first
        for binding in bindings {
            statement.bind(index, attributes.values[binding.position], kind: binding.kind)
            index += 1
        }
    }
}

/// The columns that a statement reads.
struct ColumnList {
    let names: [String]
    let kinds: [AttributeKind]
    /// Whether each column is computed; empty if none is.
    private let isGenerated: [Bool]

    init(_ attributes: [Attribute] = []) {
        names = attributes.map(\.name)
        kinds = attributes.map(\.kind)
        isGenerated =
            attributes.contains(where: \.isGenerated) ? attributes.map(\.isGenerated) : []
    }

    /// Returns the columns of the current row, the first of which is at `first`. All rows share the
    /// list of names. A computed value that cannot be sent counts as null, because each database
    /// computes its own.
    func attributes(of row: Statement, from first: Int32) throws(SQLiteError) -> Attributes {
        var values: [Value] = []
        values.reserveCapacity(kinds.count)
        var column = first
        for kind in kinds {
            do throws(SQLiteError) {
                values.append(try row.value(column, kind: kind))
            } catch {
                guard error.isMismatch, !isGenerated.isEmpty, isGenerated[values.count] else {
                    throw error
                }
                values.append(.null)
            }
            column += 1
        }
        return Attributes(names: names, values: values)
    }
}
