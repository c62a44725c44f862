internal import MartletModel

/// Finds the columns and types of an expression, and turns it into nodes.
struct Resolver {
    /// A source of rows that a name may refer to.
    struct Source {
        let alias: String
        let type: Int
        let frame: Int
    }

    let schema: Schema
    /// The sources of each query, from the outermost to the innermost one.
    var scopes: [[Source]]
    var nextFrame = 1
    /// The texts in PostgreSQL's form of those that stand for UUIDs, by their positions in the file.
    var canonicalTexts: [Int: String] = [:]

    /// Creates a resolver for policies of a type.
    init(_ schema: Schema, type: Int) {
        self.schema = schema
        scopes = [[Source(alias: schema.types[type].name, type: type, frame: 0)]]
    }

    /// Returns the condition of a policy.
    /// - Throws: `RulesFault` for an unknown name, and for types that do not fit.
    mutating func condition(_ expression: Expression) throws(RulesFault) -> Node {
        let operand = try operand(expression)
        let type = operand.type
        switch type {
        case .boolean: return operand.node
        case .unknown: return try literal(operand, as: .boolean)
        default:
            throw RulesFault(
                "a condition is expected here, and this is of the type \(type.name)",
                at: expression.position, remedy: "compare it with something")
        }
    }

    /// Returns an expression's node and type.
    mutating func resolve(_ expression: Expression) throws(RulesFault) -> (Node, RuleType) {
        switch expression.content {
        case .null: return (.constant(.null), .unknown)
        case .boolean(let value): return (.constant(.boolean(value)), .boolean)
        case .text(let text): return (.constant(.text(text)), .unknown)
        case .integer(let digits):
            guard let number = Int64(digits) else { return try decimal(digits, expression) }
            return (.constant(.integer(number)), .integer)
        case .decimal(let digits): return try decimal(digits, expression)
        case .column(let source, let name):
            return try column(source, name, expression.position)
        case .call(let name, let arguments):
            return try call(name, arguments, expression.position)
        case .cast(let operand, let type): return try cast(operand, type)
        case .arithmetic(let sign, let left, let right):
            return try arithmetic(sign, left, right, expression.position)
        case .negative(let operand):
            let (node, type) = try resolve(operand)
            guard type == .integer else { throw noNumber(type, operand.position) }
            return (.negative(node), .integer)
        case .scalar(let query):
            let (resolved, type) = try self.query(query, needsOutput: true)
            return (.scalar(resolved), type)
        default: return (try logical(expression), .boolean)
        }
    }

    private mutating func logical(_ expression: Expression) throws(RulesFault) -> Node {
        func negated(_ node: Node, _ isNegated: Bool) -> Node { isNegated ? .not(node) : node }
        switch expression.content {
        case .not(let operand): return .not(try condition(operand))
        case .and(let all): return .and(try conditions(all))
        case .or(let all): return .or(try conditions(all))
        case .comparison(let comparison, let left, let right):
            return try compared(comparison, left, right)
        case .test(let operand, nil, let isNegated):
            return negated(.test(try resolve(operand).0, truth: nil), isNegated)
        case .test(let operand, let truth, let isNegated):
            return negated(.test(try condition(operand), truth: truth), isNegated)
        case .distinct(let left, let right, let isNegated):
            let (left, right) = try pair(left, right, isOrder: false)
            return negated(.distinct(left, right), isNegated)
        case .between(let value, let lower, let upper, let isNegated) where value.isUntyped:
            // As in PostgreSQL, each bound gives a text in quotes a type of its own.
            let (least, most) = (
                try compared(.greaterOrEqual, value, lower),
                try compared(.lessOrEqual, value, upper)
            )
            return negated(.and([least, most]), isNegated)
        case .between(let value, let lower, let upper, let isNegated):
            let (node, bounds) = try fitted(value, [lower, upper], isOrder: true)
            return negated(.between(node, bounds[0], bounds[1]), isNegated)
        case .list(let value, let list, let isNegated):
            let (node, members) = try fitted(value, list, isOrder: false)
            return negated(.list(node, members), isNegated)
        case .among(let value, let query, let isNegated):
            return negated(try among(value, query), isNegated)
        case .like(let text, let pattern, let escape, let isNegated):
            let escape = try escape.map { (some) throws(RulesFault) in try self.text(some) }
            return negated(
                .like(try self.text(text), try self.text(pattern), escape: escape), isNegated)
        case .exists(let query): return .exists(try self.query(query, needsOutput: false).0)
        default:
            throw RulesFault("a condition is expected here", at: expression.position)
        }
    }

    private mutating func conditions(_ all: [Expression]) throws(RulesFault) -> [Node] {
        var nodes: [Node] = []
        for expression in all { nodes.append(try condition(expression)) }
        return nodes
    }

    /// Gives a value and others types that compare. Each expression is resolved once, so that the
    /// work stays in proportion to the text.
    private mutating func fitted(
        _ value: Expression, _ others: [Expression], isOrder: Bool
    ) throws(RulesFault) -> (Node, [Node]) {
        var first = try operand(value)
        var resolved: [Operand] = []
        for other in others { resolved.append(try operand(other)) }
        // A text in quotes takes the type of the first one that has a type.
        if first.type == .unknown, let known = resolved.first(where: { $0.type != .unknown })?.type
        {
            try Self.refuse(Operand(node: first.node, type: known, position: first.position))
            let node = try literal(first, as: known)
            first = Operand(node: node, type: known, position: first.position)
        }
        var nodes: [Node] = []
        for other in resolved {
            let node = try fitted(first, other, isOrder: isOrder).1
            // All members are compared with one form of the value.
            let isUUID = other.type == .text || other.type == .storedUUID
            nodes.append(first.type == .storedUUID && isUUID ? .uuid(node) : node)
        }
        return (first.canonical, nodes)
    }

    private mutating func among(
        _ value: Expression, _ query: Query
    ) throws(RulesFault) -> Node {
        let first = try operand(value)
        let (resolved, other) = try self.query(query, needsOutput: true)
        let second = Operand(
            node: resolved.output ?? .constant(.null), type: other,
            position: query.outputs.first?.position ?? value.position)
        let (left, right) = try fitted(first, second, isOrder: false)
        var query = resolved
        query.output = right
        return .among(left, query)
    }

    /// Returns a text; a literal is one.
    private mutating func text(_ expression: Expression) throws(RulesFault) -> Node {
        let operand = try operand(expression)
        try Self.refuse(operand)
        let (node, type) = (operand.node, operand.type)
        guard type == .text || type == .unknown || type == .any else {
            throw RulesFault(
                "a text is expected here, and this is of the type \(type.name)",
                at: expression.position, remedy: "write “::text” behind it")
        }
        return node
    }

    private func decimal(
        _ digits: String, _ expression: Expression
    ) throws(RulesFault) -> (Node, RuleType) {
        guard let number = ExactDecimal(digits) else {
            throw RulesFault(
                "the number “\(digits)” is not supported", at: expression.position,
                remedy: "write it without an exponent")
        }
        return (.constant(.decimal(number)), .numeric)
    }

    private func noNumber(_ type: RuleType, _ position: TextPosition) -> RulesFault {
        RulesFault(
            "an integer is expected here, and this is of the type \(type.name)", at: position)
    }
}

// MARK: - Names

extension Resolver {
    private func column(
        _ source: String?, _ name: String, _ position: TextPosition
    ) throws(RulesFault) -> (Node, RuleType) {
        for scope in scopes.reversed() {
            var found: [(Node, RuleType)] = []
            for candidate in scope {
                if let source, !source.hasSameBytes(as: candidate.alias) { continue }
                let type = schema.types[candidate.type]
                if let (index, kind, meaning) = Self.column(name, of: type) {
                    found.append(
                        (
                            .column(
                                frame: candidate.frame, column: index, type: RuleType(kind)),
                            RuleType(kind, meaning)
                        ))
                } else if source != nil {
                    throw unknown(name, of: type, position)
                }
            }
            if found.count > 1 {
                throw RulesFault(
                    "more than one source has a column “\(name)”", at: position,
                    remedy: "write the source before it: \(scope[0].alias).\(name)")
            }
            if let first = found.first { return first }
        }
        if let source {
            throw RulesFault(
                "no source here has the name “\(source)”", at: position,
                remedy: "expected one of \(Self.listed(scopes.joined().map(\.alias)))")
        }
        throw unknown(name, of: schema.types[scopes[scopes.count - 1][0].type], position)
    }

    private static func column(
        _ name: String, of type: EntityType
    ) -> (Int, AttributeKind, ColumnMeaning)? {
        if name.hasSameBytes(as: type.key) {
            return (0, type.keyKind == .integer ? .integer : .text, type.keyMeaning)
        }
        return attribute(name, of: type).map {
            ($0 + 1, type.attributes[$0].kind, type.attributes[$0].meaning)
        }
    }

    /// Returns the position of the attribute whose name has the same bytes; nil if there is none.
    static func attribute(_ name: String, of type: EntityType) -> Int? {
        type.index(ofAttribute: name).flatMap {
            type.attributes[$0].name.hasSameBytes(as: name) ? $0 : nil
        }
    }

    private func unknown(
        _ name: String, of type: EntityType, _ position: TextPosition
    ) -> RulesFault {
        RulesFault(
            "“\(type.name)” has no column “\(name)”", at: position,
            remedy: "expected one of \(Self.listed([type.key] + type.attributes.map(\.name)))")
    }

    static func listed(_ names: [String]) -> String {
        let shown = names.prefix(12).map { "“\($0)”" }.joined(separator: ", ")
        return names.count > 12 ? shown + " …" : shown
    }

    private mutating func call(
        _ name: String, _ arguments: [Expression], _ position: TextPosition
    ) throws(RulesFault) -> (Node, RuleType) {
        switch name {
        case "martlet_user":
            try expect(0, arguments, name, position)
            return (.user, .text)
        case "martlet_today":
            try expect(0, arguments, name, position)
            return (.today, .date)
        case "martlet_role":
            return (.role(try word(arguments, name, position)), .boolean)
        case "martlet_claim":
            // As in PostgreSQL, where the function is nullif(current_setting(…), '').
            let claim = Node.claim(try word(arguments, name, position))
            return (.nullIf(claim, .constant(.text(""))), .text)
        case "current_setting": return try setting(arguments, position)
        case "coalesce": return try coalesce(arguments, position)
        case "nullif":
            guard arguments.count == 2 else {
                throw RulesFault("“nullif” takes two values in its brackets", at: position)
            }
            let (first, second) = (try operand(arguments[0]), try operand(arguments[1]))
            let (left, right) = try fitted(first, second, isOrder: false)
            let known = [first.type, second.type].first { $0 != .unknown }
            return (.nullIf(left, right), known ?? .text)
        default:
            let remedies = [
                "now": "write martlet_today()", "auth.uid": "write martlet_user()",
                "auth.jwt": "write martlet_claim('NAME') for a claim of the token",
                "auth.role": "write martlet_role('NAME')",
                "auth.email": "write martlet_claim('email')",
                "lower": "store the folded text in a column", "upper": "store it in a column",
                "pg_has_role": "write martlet_role('NAME')",
            ]
            throw RulesFault(
                "the function “\(name)” is not supported", at: position,
                remedy: remedies[name]
                    ?? """
                    expected martlet_user(), martlet_role('…'), martlet_claim('…'), \
                    martlet_today(), current_setting('martlet.…'), coalesce(…) or nullif(…)
                    """)
        }
    }

    private func expect(
        _ count: Int, _ arguments: [Expression], _ name: String, _ position: TextPosition
    ) throws(RulesFault) {
        guard arguments.count != count else { return }
        throw RulesFault(
            "“\(name)” takes \(count == 0 ? "nothing" : "one text") in its brackets", at: position)
    }

    private func word(
        _ arguments: [Expression], _ name: String, _ position: TextPosition
    ) throws(RulesFault) -> String {
        try expect(1, arguments, name, position)
        guard let text = arguments[0].literal else {
            throw RulesFault(
                "“\(name)” takes a text in quotes, such as \(name)('club')",
                at: arguments[0].position)
        }
        return text
    }

    /// Returns what a setting of a web application's session stands for.
    private func setting(
        _ arguments: [Expression], _ position: TextPosition
    ) throws(RulesFault) -> (Node, RuleType) {
        guard let first = arguments.first, arguments.count <= 2, let name = first.literal else {
            throw RulesFault(
                "“current_setting” takes the name of a setting in quotes", at: position)
        }
        var value: Node?
        let claims = "martlet.claim."
        if name == "martlet.user" { value = .user }
        if name.hasPrefix(claims), name.count > claims.count {
            value = .claim(String(name.dropFirst(claims.count)))
        }
        if let value {
            // PostgreSQL fails if the setting has no value, unless the second argument says otherwise.
            guard arguments.count == 2 else { return (.setting(value, name: name), .text) }
            guard case .boolean(let isOptional) = arguments[1].content else {
                throw RulesFault(
                    "“current_setting” takes true or false as its second value",
                    at: arguments[1].position)
            }
            return (isOptional ? value : .setting(value, name: name), .text)
        }
        throw RulesFault(
            "the setting “\(name)” has no meaning here", at: first.position,
            remedy: Self.remedy(forSetting: name))
    }

    /// Returns what to write for a setting that other servers use.
    private static func remedy(forSetting name: String) -> String {
        let claims = "request.jwt.claim."
        if name == claims + "sub" { return "write martlet_user()" }
        if name == claims + "role" { return "write martlet_role('NAME')" }
        if name.hasPrefix(claims) {
            return "write martlet_claim('\(name.dropFirst(claims.count))')"
        }
        if name == "request.jwt.claims" {
            return "write martlet_user(), martlet_role('NAME') or martlet_claim('NAME')"
        }
        return "expected 'martlet.user' or 'martlet.claim.NAME'"
    }

    private mutating func coalesce(
        _ arguments: [Expression], _ position: TextPosition
    ) throws(RulesFault) -> (Node, RuleType) {
        guard let first = arguments.first else {
            throw RulesFault("“coalesce” needs a value", at: position)
        }
        var type = RuleType.unknown
        var operands: [Operand] = []
        for argument in [first] + arguments.dropFirst() {
            let next = try operand(argument)
            operands.append(next)
            if type == .unknown {
                type = next.type
            } else if next.type != .unknown, next.type != type {
                let kinds = Set([type.isUUID ? .uuid : type, next.type.isUUID ? .uuid : next.type])
                guard kinds == [.uuid] || kinds == [.date, .storedDate] else {
                    throw differ(type, next.type, argument.position)
                }
                type = type.isUUID ? .uuid : .date
            }
        }
        // As in PostgreSQL, texts in quotes alone are texts.
        if type == .unknown { type = .text }
        var nodes: [Node] = []
        for operand in operands {
            if operand.type == .unknown {
                nodes.append(try literal(operand, as: type))
            } else {
                let isKeptDay = type == .date && operand.type == .storedDate
                nodes.append(
                    isKeptDay
                        ? .cast(operand.node, .date)
                        : type == .uuid ? operand.canonical : operand.node)
            }
        }
        return (.coalesce(nodes), type)
    }
}

extension Expression {
    /// Whether it is a text in quotes or NULL.
    fileprivate var isUntyped: Bool {
        switch content {
        case .text, .null: true
        default: false
        }
    }

    /// A text in quotes, which may have a cast to text behind it, as PostgreSQL shows it.
    fileprivate var literal: String? {
        switch content {
        case .text(let text): text
        case .cast(let operand, let type) where RuleType(cast: type.name) == .text: operand.literal
        default: nil
        }
    }
}
