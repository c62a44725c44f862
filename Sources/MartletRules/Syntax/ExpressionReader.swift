/// Reads conditions with PostgreSQL's precedence: OR, AND, NOT, IS, comparisons, BETWEEN and IN and
/// LIKE, `+` and `-`, `*` and `/` and `%`, signs, `::`.
struct ExpressionReader {
    var tokens: TokenReader
    private var depth = 0

    /// How deeply conditions may be nested, so that no file exhausts the stack.
    static let depthLimit = 60
    /// How many operators of one precedence may follow each other, for the same reason.
    static let chainLimit = 200

    init(_ tokens: TokenReader) { self.tokens = tokens }

    /// Reads a condition or a value.
    mutating func expression() throws(RulesFault) -> Expression {
        guard depth < Self.depthLimit else {
            throw RulesFault(
                "the condition is nested more than \(Self.depthLimit) levels deep",
                at: tokens.position)
        }
        depth += 1
        defer { depth -= 1 }
        return try chain(
            "or",
            { (reader) throws(RulesFault) in
                try reader.chain(
                    "and", { (reader) throws(RulesFault) in try reader.negation() },
                    Expression.Content.and)
            }, Expression.Content.or)
    }

    private mutating func chain(
        _ word: String, _ operand: (inout Self) throws(RulesFault) -> Expression,
        _ joined: ([Expression]) -> Expression.Content
    ) throws(RulesFault) -> Expression {
        let first = try operand(&self)
        var all = [first]
        while tokens.skip(word) { all.append(try operand(&self)) }
        return all.count == 1
            ? first : Expression(position: first.position, content: joined(all))
    }

    private mutating func negation() throws(RulesFault) -> Expression {
        let start = tokens.position
        var count = 0
        while tokens.skip("not") { count += 1 }
        var operand = try test()
        // NOT NOT NOT x is NOT x for every truth value, also for NULL.
        for _ in 0..<(count == 0 ? 0 : 2 - count % 2) {
            operand = Expression(position: start, content: .not(operand))
        }
        return operand
    }

    private mutating func test() throws(RulesFault) -> Expression {
        var operand = try comparison()
        var count = 0
        while tokens.current.isWord("is") {
            let start = tokens.position
            tokens.advance()
            count += 1
            guard count < Self.chainLimit else { throw tooLong(start) }
            let isNegated = tokens.skip("not")
            let content: Expression.Content
            if tokens.skip("null") || tokens.skip("unknown") {
                content = .test(operand, truth: nil, isNegated: isNegated)
            } else if tokens.skip("true") {
                content = .test(operand, truth: true, isNegated: isNegated)
            } else if tokens.skip("false") {
                content = .test(operand, truth: false, isNegated: isNegated)
            } else if tokens.skip("distinct") {
                try tokens.expect("from")
                content = .distinct(operand, try comparison(), isNegated: isNegated)
            } else {
                throw tokens.unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
            }
            operand = Expression(position: operand.position, content: content)
        }
        return operand
    }

    private mutating func comparison() throws(RulesFault) -> Expression {
        let left = try membership()
        guard case .sign(let sign) = tokens.current.kind,
            let comparison = Comparison(rawValue: sign)
        else { return left }
        tokens.advance()
        if let content = try quantified(comparison, left) {
            return Expression(position: left.position, content: content)
        }
        let right = try membership()
        if case .sign(let next) = tokens.current.kind, Comparison(rawValue: next) != nil {
            throw RulesFault(
                "comparisons cannot follow each other", at: tokens.position,
                remedy: "join two comparisons with AND")
        }
        return Expression(
            position: left.position, content: .comparison(comparison, left, right))
    }

    /// Reads BETWEEN, IN and LIKE, which bind more tightly than comparisons.
    private mutating func membership() throws(RulesFault) -> Expression {
        let operand = try sum()
        let isNegated =
            tokens.current.isWord("not")
            && ["between", "in", "like", "ilike", "similar"].contains {
                tokens.following.isWord($0)
            }
        if isNegated { tokens.advance() }
        let start = tokens.position
        let content: Expression.Content
        if tokens.skip("between") {
            if tokens.current.isWord("symmetric") {
                throw RulesFault(
                    "“BETWEEN SYMMETRIC” is not supported", at: start,
                    remedy: "write the lower value first")
            }
            let lower = try sum()
            try tokens.expect("and")
            content = .between(operand, lower, try sum(), isNegated: isNegated)
        } else if tokens.skip("in") {
            content = try members(of: operand, isNegated: isNegated)
        } else if tokens.skip("like") {
            let pattern = try sum()
            let escape = tokens.skip("escape") ? try sum() : nil
            content = .like(operand, pattern, escape: escape, isNegated: isNegated)
        } else if tokens.skipSign("~~") {
            content = try pattern(of: operand, isNegated: false)
        } else if tokens.skipSign("!~~") {
            content = try pattern(of: operand, isNegated: true)
        } else if tokens.current.isWord("ilike") || tokens.current.isWord("similar") {
            throw RulesFault(
                "\(tokens.current.shown) is not supported: letters are compared as they are",
                at: start, remedy: "write LIKE")
        } else {
            return operand
        }
        return Expression(position: operand.position, content: content)
    }

    private mutating func members(
        of operand: Expression, isNegated: Bool
    ) throws(RulesFault) -> Expression.Content {
        try tokens.expectSign("(")
        if tokens.current.isWord("select") {
            let query = try query()
            try tokens.expectSign(")")
            return .among(operand, query, isNegated: isNegated)
        }
        var list: [Expression] = []
        repeat { list.append(try expression()) } while tokens.skipSign(",")
        try tokens.expectSign(")")
        return .list(operand, list, isNegated: isNegated)
    }

    private func tooLong(_ position: TextPosition) -> RulesFault {
        RulesFault(
            "more than \(Self.chainLimit) operators follow each other", at: position)
    }

    mutating func sum() throws(RulesFault) -> Expression {
        try operation([.plus, .minus]) { (reader) throws(RulesFault) in
            try reader.operation([.times, .divided, .remainder]) { (reader) throws(RulesFault) in
                try reader.signed()
            }
        }
    }

    private mutating func operation(
        _ operators: Set<Arithmetic>, _ operand: (inout Self) throws(RulesFault) -> Expression
    ) throws(RulesFault) -> Expression {
        var left = try operand(&self)
        var count = 0
        while case .sign(let sign) = tokens.current.kind {
            if sign == "||" {
                throw RulesFault("“||” is not supported", at: tokens.position)
            }
            guard let arithmetic = Arithmetic(rawValue: sign), operators.contains(arithmetic)
            else { break }
            count += 1
            guard count < Self.chainLimit else { throw tooLong(tokens.position) }
            tokens.advance()
            left = Expression(
                position: left.position,
                content: .arithmetic(arithmetic, left, try operand(&self)))
        }
        return left
    }

    private mutating func signed() throws(RulesFault) -> Expression {
        let start = tokens.position
        if tokens.skipSign("+") { return try deeper { (r) throws(RulesFault) in try r.signed() } }
        guard tokens.skipSign("-") else { return try castOperand() }
        // The lowest integer has no positive counterpart.
        let operand = try deeper { (reader) throws(RulesFault) in try reader.signed() }
        if case .integer(let digits) = operand.content, !digits.hasPrefix("-") {
            return Expression(position: start, content: .integer("-" + digits))
        }
        if case .decimal(let digits) = operand.content, !digits.hasPrefix("-") {
            return Expression(position: start, content: .decimal("-" + digits))
        }
        return Expression(position: start, content: .negative(operand))
    }

    mutating func deeper<Read>(
        _ read: (inout Self) throws(RulesFault) -> Read
    ) throws(RulesFault) -> Read {
        guard depth < Self.depthLimit else { throw tooLong(tokens.position) }
        depth += 1
        defer { depth -= 1 }
        return try read(&self)
    }

    private mutating func castOperand() throws(RulesFault) -> Expression {
        var operand = try primary()
        var count = 0
        while tokens.skipSign("::") {
            count += 1
            guard count < Self.chainLimit else { throw tooLong(tokens.position) }
            operand = Expression(
                position: operand.position, content: .cast(operand, type: try typeName()))
        }
        if tokens.current.isWord("collate") { try collation() }
        if tokens.current.isSign("||") {
            throw RulesFault("“||” is not supported", at: tokens.position)
        }
        return operand
    }

    mutating func typeName() throws(RulesFault) -> NameText {
        let name = try tokens.name("a type such as “integer” or “date”")
        if name.name == "double", tokens.skip("precision") {
            return NameText(name: "double precision", position: name.position)
        }
        if ["timestamp", "time"].contains(name.name),
            tokens.current.isWord("with") || tokens.current.isWord("without")
        {
            let zone = tokens.current.isWord("with") ? "with" : "without"
            tokens.advance()
            try tokens.expect("time")
            try tokens.expect("zone")
            return NameText(name: "\(name.name) \(zone) time zone", position: name.position)
        }
        if name.name == "character", tokens.skip("varying") {
            return NameText(name: "varchar", position: name.position)
        }
        if tokens.current.isSign("(") {
            throw RulesFault(
                "a type with a length is not supported", at: tokens.position,
                remedy: "leave out the length")
        }
        return name
    }
}

extension ExpressionReader {
    private mutating func primary() throws(RulesFault) -> Expression {
        let start = tokens.position
        switch tokens.current.kind {
        case .text(let text):
            tokens.advance()
            return Expression(position: start, content: .text(text))
        case .integer(let digits):
            tokens.advance()
            return Expression(position: start, content: .integer(digits))
        case .decimal(let digits):
            tokens.advance()
            return Expression(position: start, content: .decimal(digits))
        case .sign("("):
            return try bracketed(start)
        case .word(let word):
            if let content = try keyWord(word) {
                return Expression(position: start, content: content)
            }
            return try reference(start)
        case .name: return try reference(start)
        case .sign, .end: throw tokens.unexpected("a column, a value or a condition")
        }
    }

    private mutating func bracketed(_ start: TextPosition) throws(RulesFault) -> Expression {
        tokens.advance()
        let inner: Expression
        if tokens.current.isWord("select") {
            inner = Expression(position: start, content: .scalar(try query()))
        } else {
            inner = try expression()
            if tokens.current.isSign(",") {
                throw RulesFault(
                    "a row of several values is not supported", at: tokens.position,
                    remedy: "compare the values one by one")
            }
        }
        try tokens.expectSign(")")
        return inner
    }

    private mutating func keyWord(_ word: String) throws(RulesFault) -> Expression.Content? {
        switch word {
        case "null":
            tokens.advance()
            return .null
        case "true", "false":
            tokens.advance()
            return .boolean(word == "true")
        case "exists":
            tokens.advance()
            try tokens.expectSign("(")
            guard tokens.current.isWord("select") else { throw tokens.unexpected("SELECT") }
            let query = try query()
            try tokens.expectSign(")")
            return .exists(query)
        case "cast":
            tokens.advance()
            try tokens.expectSign("(")
            let operand = try expression()
            try tokens.expect("as")
            let type = try typeName()
            try tokens.expectSign(")")
            return .cast(operand, type: type)
        case "case":
            throw RulesFault(
                "“CASE” is not supported", at: tokens.position, remedy: "write AND and OR")
        case "date" where tokens.following.isText:
            let type = NameText(name: "date", position: tokens.position)
            tokens.advance()
            return .cast(try primary(), type: type)
        case "current_date", "current_timestamp":
            throw RulesFault(
                "“\(word)” is not supported", at: tokens.position,
                remedy: "write martlet_today(), the day of the server")
        case "current_user", "session_user", "user", "current_role":
            throw RulesFault(
                "“\(word)” is not supported: the database's user is the server",
                at: tokens.position, remedy: "write martlet_user()")
        case "array", "interval", "row":
            guard !tokens.following.isSign(")"), word == "array" || tokens.following.isText else {
                return nil
            }
            throw RulesFault("“\(word.uppercased())” is not supported", at: tokens.position)
        default: return nil
        }
    }

    /// Reads a column or a call of a function.
    private mutating func reference(_ start: TextPosition) throws(RulesFault) -> Expression {
        let first = try tokens.name("a column, a value or a condition")
        if tokens.current.isSign("(") {
            if tokens.following.isSign("*") {
                throw RulesFault(
                    "“\(first.name)(*)” is not supported", at: start,
                    remedy: "write EXISTS (SELECT …), or keep the number in a column")
            }
            return Expression(
                position: start, content: .call(name: first.name, arguments: try arguments()))
        }
        guard tokens.skipSign(".") else {
            return Expression(position: start, content: .column(source: nil, name: first.name))
        }
        let second = try tokens.name("a column")
        if tokens.current.isSign("(") {
            let isOurs = first.name == "public" && second.name.hasPrefix("martlet_")
            let name =
                isOurs || first.name == "pg_catalog"
                ? second.name : "\(first.name).\(second.name)"
            return Expression(
                position: start, content: .call(name: name, arguments: try arguments()))
        }
        return Expression(
            position: start, content: .column(source: first.name, name: second.name))
    }

    private mutating func arguments() throws(RulesFault) -> [Expression] {
        try tokens.expectSign("(")
        var arguments: [Expression] = []
        if tokens.skipSign(")") { return [] }
        repeat { arguments.append(try expression()) } while tokens.skipSign(",")
        try tokens.expectSign(")")
        return arguments
    }
}
