/// Conditions of policies that chance writes in SQL.
struct RandomCondition {
    let tables: [RandomRules.Table]
    /// The first table that queries inside may read.
    private var readable: Int
    /// The sources that names may refer to, from the outermost query on.
    private var scope: [(alias: String, table: RandomRules.Table)] = []
    private var aliases = 0

    init(tables: [RandomRules.Table], readable: Int) {
        self.tables = tables
        self.readable = readable
    }

    /// Returns a condition of a policy on a table.
    mutating func condition(of table: RandomRules.Table, _ chance: inout Chance) -> String {
        scope = [(table.sql, table)]
        aliases = 0
        return condition(3, &chance)
    }

    /// Returns the condition that the viewer is a member of the row, or of a row to which it leads along
    /// up to three references.
    mutating func membership(of table: RandomRules.Table, _ chance: inout Chance) -> String {
        aliases = 0
        return membership(table.sql, table, 3, &chance)
    }

    private mutating func membership(
        _ alias: String, _ table: RandomRules.Table, _ depth: Int, _ chance: inout Chance
    ) -> String {
        guard let members = tables.last else { return "true" }
        let parents = table.columns.filter { column in
            column.target.map {
                $0 >= readable && $0 < tables.count - 1 && tables[$0].name != table.name
            }
                ?? false
        }
        let own = members.columns.filter { $0.target.map { tables[$0].name } == table.name }
        if depth > 0, own.isEmpty || chance.percent(60),
            let column = parents.randomElement(using: &chance), let target = column.target
        {
            aliases += 1
            let (inner, parent) = ("p\(aliases)", tables[target])
            // The condition of the parent may lead on only to tables behind it.
            let former = readable
            readable = target + 1
            defer { readable = former }
            let rest = membership(inner, parent, depth - 1, &chance)
            guard chance.percent(50) else {
                return """
                    \(alias).\(column.sql) IN (SELECT \(inner).\(parent.sqlKey) FROM \(parent.sql) AS \(inner) \
                    WHERE \(rest))
                    """
            }
            return """
                EXISTS (SELECT FROM \(parent.sql) AS \(inner) \
                WHERE \(inner).\(parent.sqlKey) = \(alias).\(column.sql) AND \(rest))
                """
        }
        guard let member = own.randomElement(using: &chance) else {
            return "\(alias).\(table.columns[1].sql) = martlet_user()"
        }
        return """
            \(alias).\(table.sqlKey) IN (SELECT m.\(member.sql) FROM \(members.sql) AS m \
            WHERE m.\(members.columns[1].sql) = martlet_user())
            """
    }

    private mutating func condition(_ depth: Int, _ chance: inout Chance) -> String {
        guard depth > 0, chance.percent(70) else { return predicate(depth, &chance) }
        switch chance.number(0..<8) {
        case 0, 1:
            return "\(condition(depth - 1, &chance)) AND \(condition(depth - 1, &chance))"
        case 2, 3:
            return "\(condition(depth - 1, &chance)) OR \(condition(depth - 1, &chance))"
        case 4: return "NOT \(predicate(depth - 1, &chance))"
        case 5: return "(\(condition(depth - 1, &chance)))"
        case 6:
            let test = chance.one(of: [
                "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NULL", "IS UNKNOWN",
            ])
            return "(\(condition(depth - 1, &chance))) \(test)"
        default: return predicate(depth, &chance)
        }
    }

    private mutating func predicate(_ depth: Int, _ chance: inout Chance) -> String {
        var kind = chance.one(of: [
            RandomRules.Kind.integer, .integer, .text, .text, .date, .numeric, .real, .uuid,
        ])
        // Constants alone decide a comparison, and PostgreSQL then forgets about queries next to it.
        if column(kind, &chance) == nil { kind = chance.percent(50) ? .integer : .text }
        switch chance.number(0..<14) {
        case 0: return "martlet_role('\(chance.one(of: RandomRules.roles))')"
        case 1: return column(.boolean, &chance) ?? "true"
        case 2:
            let json = chance.percent(30) ? column(.json, &chance) : nil
            return """
                \(json ?? value(kind, depth, &chance)) IS \(chance.percent(50) ? "NOT " : "")NULL
                """
        case 3:
            let not = chance.percent(50) ? "NOT " : ""
            return """
                \(value(kind, depth, &chance)) IS \(not)DISTINCT FROM \
                \(value(kind, depth, &chance))
                """
        case 4:
            let list = (0..<chance.number(1..<4)).map { _ in value(kind, 0, &chance) }
            return
                "\(value(kind, depth, &chance)) \(maybeNot(&chance))IN (\(list.joined(separator: ", ")))"
        case 5:
            return """
                \(value(kind, depth, &chance)) \(maybeNot(&chance))BETWEEN \
                \(value(kind, 0, &chance)) AND \(value(kind, 0, &chance))
                """
        case 6:
            let pattern = chance.one(of: ["a%", "%b", "_nn", "%", "", "a\\%b", "%o%", "a!_b"])
            let escape = pattern.contains("!") ? " ESCAPE '!'" : ""
            return "\(value(.text, depth, &chance)) \(maybeNot(&chance))LIKE '\(pattern)'\(escape)"
        case 7...9 where depth > 0 && readable < tables.count:
            return "\(maybeNot(&chance))EXISTS (\(query(nil, depth - 1, &chance)))"
        case 10 where depth > 0 && readable < tables.count:
            return """
                \(value(kind, 0, &chance)) \(maybeNot(&chance))IN \
                (\(query(kind, depth - 1, &chance)))
                """
        default:
            let sign = chance.one(of: ["=", "=", "=", "<>", "<", "<=", ">", ">=", "!="])
            return "\(value(kind, depth, &chance)) \(sign) \(value(kind, depth, &chance))"
        }
    }

    private func maybeNot(_ chance: inout Chance) -> String { chance.percent(30) ? "NOT " : "" }

    private mutating func value(
        _ kind: RandomRules.Kind, _ depth: Int, _ chance: inout Chance
    ) -> String {
        if chance.percent(60), let column = column(kind, &chance) { return column }
        switch kind {
        case .integer: return integer(depth, &chance)
        case .text:
            switch chance.number(0..<5) {
            case 0: return "martlet_user()"
            case 1: return "martlet_claim('club')"
            case 2: return "nullif(current_setting('martlet.user', true), '')"
            default: return "'\(chance.one(of: RandomRules.texts))'"
            }
        case .date:
            switch chance.number(0..<5) {
            case 0: return "martlet_today()"
            case 1: return "martlet_today() - \(chance.number(0..<4))"
            case 2: return "\(column(.date, &chance) ?? "martlet_today()") + 1"
            case 3:
                let (column, day) = (column(.date, &chance), chance.one(of: RandomRules.days))
                return "coalesce(\(column ?? "NULL"), DATE '\(day)')"
            default:
                let isTyped = chance.percent(50)
                return "\(isTyped ? "DATE " : "")'\(chance.one(of: RandomRules.days))'"
            }
        case .numeric: return chance.one(of: ["1.5", "-2", "0.0", "3", "2.25"])
        case .real: return chance.one(of: ["0.5", "-2", "1.5", "0", "3"])
        case .uuid:
            let form = RandomRules.form(of: chance.one(of: RandomRules.uuids), &chance)
            return "'\(form)'\(chance.percent(30) ? "::uuid" : "")"
        case .boolean, .json: return "true"
        }
    }

    /// Returns a value that a query selects, where a text in quotes is a text.
    private mutating func selected(_ kind: RandomRules.Kind, _ chance: inout Chance) -> String {
        let value = value(kind, 0, &chance)
        return [.date, .uuid].contains(kind) ? "(\(value))::\(kind.sql)" : value
    }

    private mutating func integer(_ depth: Int, _ chance: inout Chance) -> String {
        switch chance.number(0..<8) {
        case 0: return "martlet_claim('number')::integer"
        case 1: return "coalesce(\(column(.integer, &chance) ?? "NULL"), 3)"
        case 2:
            let sign = chance.one(of: ["+", "-", "*"])
            return "(\(column(.integer, &chance) ?? "2") \(sign) \(chance.number(-2..<3)))"
        case 3: return "(martlet_today() - \(column(.date, &chance) ?? "martlet_today()"))"
        case 4: return "\(column(.integer, &chance) ?? "2") \(chance.one(of: ["/", "%"])) 2"
        case 5 where depth > 1 && readable < tables.count:
            return "(\(query(.integer, 0, &chance, isOne: true)))"
        case 6: return "-(\(column(.integer, &chance) ?? "2"))"
        default: return "\(chance.number(-2..<7))"
        }
    }

    /// Returns a column of a source, mostly of the innermost ones; nil if no source has one.
    private func column(_ kind: RandomRules.Kind, _ chance: inout Chance) -> String? {
        let source = chance.percent(50) ? scope[scope.count - 1] : chance.one(of: scope)
        guard let name = Self.columns(kind, of: source.table).randomElement(using: &chance) else {
            return nil
        }
        return scope.count == 1 && chance.percent(50) ? name : "\(source.alias).\(name)"
    }

    /// Returns the columns of a kind; every table has one for integers and one for texts.
    private static func columns(_ kind: RandomRules.Kind, of table: RandomRules.Table) -> [String] {
        table.columns.filter { $0.kind == kind }.map(\.sql)
            + (table.keyKind == kind ? [table.sqlKey] : [])
    }

    /// Returns that two rows belong together: mostly that one refers to the other.
    private func joined(
        _ first: (alias: String, table: RandomRules.Table),
        _ second: (alias: String, table: RandomRules.Table), _ chance: inout Chance
    ) -> String {
        for (child, parent) in [(first, second), (second, first)] where chance.percent(90) {
            let references = child.table.columns.filter { column in
                column.target.map { tables[$0].name == parent.table.name } ?? false
            }
            if let column = references.randomElement(using: &chance) {
                return "\(child.alias).\(column.sql) = \(parent.alias).\(parent.table.sqlKey)"
            }
        }
        let kind = chance.one(of: [RandomRules.Kind.integer, .integer, .text])
        let one = chance.one(of: Self.columns(kind, of: first.table))
        let other = chance.one(of: Self.columns(kind, of: second.table))
        return "\(first.alias).\(one) = \(second.alias).\(other)"
    }

    /// Returns a query over tables that may be read.
    /// - Parameters:
    ///   - kind: The kind of the values that it selects; nil for any.
    ///   - isOne: Whether it must have one row at most.
    private mutating func query(
        _ kind: RandomRules.Kind?, _ depth: Int, _ chance: inout Chance, isOne: Bool = false
    ) -> String {
        let outer = scope
        defer { scope = outer }
        var sources: [(alias: String, table: RandomRules.Table)] = []
        for _ in 0..<(chance.percent(30) ? 2 : 1) {
            aliases += 1
            let table = tables[chance.number(readable..<tables.count)]
            sources.append(("t\(aliases)", table))
        }
        scope += sources
        let output =
            kind.map { kind in
                kind == .integer
                    ? "\(sources[0].alias).\(chance.one(of: Self.columns(kind, of: sources[0].table)))"
                    : column(kind, &chance) ?? selected(kind, &chance)
            } ?? chance.one(of: ["1", "*", ""])
        let list = sources.map { "\($0.table.sql) AS \($0.alias)" }
        var text = "SELECT \(output) FROM "
        if list.count == 2 {
            let equal = joined(sources[0], sources[1], &chance)
            text +=
                chance.percent(50)
                ? "\(list[0]) JOIN \(list[1]) ON \(equal) WHERE \(condition(depth, &chance))"
                : "\(list[0]), \(list[1]) WHERE \(equal) AND (\(condition(depth, &chance)))"
        } else {
            let equal =
                chance.percent(40)
                ? "\(sources[0].alias).\(chance.one(of: Self.columns(.integer, of: sources[0].table)))"
                    + " = \(value(.integer, 0, &chance))"
                : joined(sources[0], chance.one(of: outer), &chance)
            text +=
                "\(list[0]) WHERE "
                + (chance.percent(60)
                    ? "\(equal) AND (\(condition(depth, &chance)))" : condition(depth, &chance))
        }
        guard isOne || chance.percent(20) else { return text }
        let first = sources[0].table
        let order = chance.one(
            of: [first.columns[0].sql, first.columns[1].sql] + (isOne ? [] : [first.sqlKey]))
        let direction = chance.one(of: ["", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"])
        text += " ORDER BY \(sources[0].alias).\(order)\(direction)"
        for source in sources { text += ", \(source.alias).\(source.table.sqlKey)" }
        return text + " LIMIT \(isOne ? 1 : chance.number(0..<4))"
    }
}
