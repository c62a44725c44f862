internal import MartletModel

extension Resolver {
    /// A value of an operator, and its position in the file.
    struct Operand {
        var node: Node
        let type: RuleType
        let position: TextPosition
    }

    mutating func operand(_ expression: Expression) throws(RulesFault) -> Operand {
        let (node, type) = try resolve(expression)
        return Operand(node: node, type: type, position: expression.position)
    }

    mutating func compared(
        _ comparison: Comparison, _ left: Expression, _ right: Expression
    ) throws(RulesFault) -> Node {
        let isOrder = comparison != .equal && comparison != .unequal
        let (left, right) = try pair(left, right, isOrder: isOrder)
        return .comparison(comparison, left, right)
    }

    /// Returns two values that can be compared.
    mutating func pair(
        _ left: Expression, _ right: Expression, isOrder: Bool
    ) throws(RulesFault) -> (Node, Node) {
        try fitted(try operand(left), try operand(right), isOrder: isOrder)
    }

    /// Gives two values types that compare.
    /// - Parameter isOrder: Whether the order counts, and not only whether they are equal.
    mutating func fitted(
        _ left: Operand, _ right: Operand, isOrder: Bool
    ) throws(RulesFault) -> (Node, Node) {
        for operand in [left, right] { try Self.refuse(operand, isOrder: isOrder) }
        switch (left.type, right.type) {
        case (.unknown, .unknown): return (left.node, right.node)
        case (.unknown, _): return (try literal(left, as: right.type), right.canonical)
        case (_, .unknown): return (left.canonical, try literal(right, as: left.type))
        case (.blob, .blob) where isOrder:
            throw RulesFault(
                "binary values have no order here", at: right.position,
                remedy: "compare with = or <>")
        case (.any, _), (_, .any): return (left.node, right.node)
        // Devices keep the days of PostgreSQL as texts.
        case (.text, .date), (.date, .text), (.storedDate, .date), (.date, .storedDate),
            (.enumeration, .text), (.text, .enumeration):
            return (left.node, right.node)
        // A text of a column that is no day has no value.
        case (.storedDate, .storedDate) where isOrder:
            return (.cast(left.node, .date), .cast(right.node, .date))
        case (.storedDate, .text): return (left.node, right.day)
        case (.text, .storedDate): return (left.day, right.node)
        case (.uuid, .text), (.storedUUID, .text):
            return right.isGiven ? (left.node, right.node) : (left.canonical, .uuid(right.node))
        case (.text, .uuid), (.text, .storedUUID):
            return left.isGiven ? (left.node, right.node) : (.uuid(left.node), right.canonical)
        case (let one, let other) where one.isUUID && other.isUUID:
            // Columns are looked up by the texts that they have.
            let isJoin = left.isColumn && right.isColumn
            return isJoin ? (left.node, right.node) : (left.canonical, right.canonical)
        default:
            guard left.type == right.type || left.type.isNumber && right.type.isNumber else {
                throw differ(left.type, right.type, right.position)
            }
            return (left.node, right.node)
        }
    }

    /// Refuses a value that PostgreSQL compares otherwise.
    static func refuse(_ operand: Operand, isOrder: Bool = false) throws(RulesFault) {
        switch operand.type {
        case .incomparable(let words, let remedy):
            throw RulesFault(words, at: operand.position, remedy: remedy)
        case .enumeration where isOrder:
            throw RulesFault(
                "PostgreSQL orders the values of an enumeration as it lists them, and Martlet by "
                    + "their bytes", at: operand.position,
                remedy: "compare with =, <> or IN (…)")
        default: break
        }
    }

    func differ(_ left: RuleType, _ right: RuleType, _ position: TextPosition) -> RulesFault {
        RulesFault(
            "a value of the type \(right.name) does not compare with one of \(left.name)",
            at: position, remedy: "write “::\(left.name)” behind the second one if it fits")
    }

    /// Reads a text in quotes as a value of a type.
    mutating func literal(
        _ operand: Operand, as type: RuleType
    ) throws(RulesFault) -> Node {
        guard case .constant(.text(let text)) = operand.node else { return operand.node }
        let value: RuleValue?
        var remedy: String?
        switch type {
        case .uuid, .storedUUID:
            value = try? RuleValue.text(text).uuid()
            if case .text(let canonical)? = value {
                canonicalTexts[operand.position.offset] = canonical
            }
            remedy = "write 32 hexadecimal digits, such as 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"
        case .storedDate, .date:
            let day = try? RuleValue.text(text).cast(to: .date)
            value = type == .date || (try? day?.cast(to: .text)) == .text(text) ? day : nil
            remedy = "write '\(CalendarDay.written(text) ?? "2026-01-31")'"
        case .enumeration(let labels):
            value = labels.contains { $0.hasSameBytes(as: text) } ? .text(text) : nil
            remedy = "expected one of \(Self.listed(labels))"
        case .blob:
            value = nil
            remedy = "compare it with another column"
        default: value = try? RuleValue.text(text).cast(to: type == .any ? .text : type)
        }
        guard let value else {
            throw RulesFault(
                "the text “'\(text)'” is no \(type.name)", at: operand.position, remedy: remedy)
        }
        return .constant(value)
    }

    mutating func cast(
        _ operand: Expression, _ name: NameText
    ) throws(RulesFault) -> (Node, RuleType) {
        guard let type = RuleType(cast: name.name) else {
            let remedy =
                switch name.name {
                case let name where name.hasPrefix("timestamp"):
                    "use only IS NULL of it, or keep a date, a number or a text"
                case "real", "float4": "write double precision"
                default:
                    "expected bigint, integer, smallint, numeric, double precision, text, uuid, "
                        + "boolean or date"
                }
            throw RulesFault(
                "the type “\(name.name)” is not supported", at: name.position, remedy: remedy)
        }
        let value = try self.operand(operand)
        try Self.refuse(value)
        let (node, from) = (value.node, value.type)
        if from == .unknown {
            return (try limited(literal(value, as: type), name, operand.position), type)
        }
        if let cast = Self.castText(value, to: type) { return (cast, type) }
        let isPossible =
            from == .any || from == .text || from == type
            || type == .text && [.integer, .boolean, .date].contains(from)
            || from.isNumber && type.isNumber && type != .integer
                && (from != .real || type == .real)
            || from == .boolean && type == .integer
        guard isPossible else {
            throw RulesFault(
                "a value of the type \(from.name) becomes no \(name.name) here",
                at: name.position,
                remedy: "compare it as it is, or keep the other value in a column")
        }
        let cast = from == type || type == .uuid ? node : Node.cast(node, type)
        return (try limited(cast, name, operand.position), type)
    }

    /// Returns the cast of a value that is kept as a text; nil for other values, and if there is none.
    private static func castText(_ value: Operand, to type: RuleType) -> Node? {
        switch (value.type, type) {
        case (.storedDate, .date), (.storedDate, .text): .cast(value.node, type)
        case (.uuid, .uuid), (.uuid, .text), (.storedUUID, .uuid), (.storedUUID, .text):
            value.canonical
        case (.enumeration, .text): value.node
        default: nil
        }
    }

    /// Gives a value the limits of the type that a cast names.
    private func limited(
        _ node: Node, _ name: NameText, _ position: TextPosition
    ) throws(RulesFault) -> Node {
        let limited: Node
        switch name.name {
        case "uuid": limited = .uuid(node)
        case "integer", "int", "int4": limited = .integer(node, bits: 32)
        case "smallint", "int2": limited = .integer(node, bits: 16)
        default: return node
        }
        guard case .constant(let value) = node else { return limited }
        do throws(RuleValueFault) {
            switch limited {
            case .integer(_, let bits): return .constant(try value.fitting(bits: bits))
            default: return .constant(try value.uuid())
            }
        } catch {
            throw RulesFault("\(error.description): it is no \(name.name)", at: position)
        }
    }

    mutating func arithmetic(
        _ sign: Arithmetic, _ left: Expression, _ right: Expression, _ position: TextPosition
    ) throws(RulesFault) -> (Node, RuleType) {
        let (one, other) = (try operand(left), try operand(right))
        for operand in [one, other] { try Self.refuse(operand) }
        var (first, firstType) = (one.node, one.type)
        var (second, secondType) = (other.node, other.type)
        // Devices keep the days of PostgreSQL as texts.
        let isDay = { (type: RuleType) in
            [.text, .any, .date, .storedDate].contains(type)
        }
        if firstType == .unknown, secondType != .unknown {
            let type = isDay(secondType) && sign == .minus ? RuleType.date : .integer
            (first, firstType) = (try literal(one, as: type), type)
        }
        if secondType == .unknown {
            let isDate = firstType == .date || firstType == .storedDate
            let type = isDate || isDay(firstType) && sign == .minus ? RuleType.date : .integer
            (second, secondType) = (try literal(other, as: type), type)
        }
        if isDay(firstType), sign == .plus && secondType == .integer || sign == .minus {
            (first, firstType) = (.cast(first, .date), .date)
        }
        if isDay(secondType),
            firstType == .date && sign == .minus
                || firstType == .integer && sign == .plus
        {
            (second, secondType) = (.cast(second, .date), .date)
        }
        let node = Node.arithmetic(sign, first, second)
        switch (firstType, sign, secondType) {
        case (.integer, _, .integer): return (node, .integer)
        case (.date, .plus, .integer), (.date, .minus, .integer), (.integer, .plus, .date):
            return (node, .date)
        case (.date, .minus, .date): return (node, .integer)
        default:
            throw RulesFault(
                """
                “\(sign.rawValue)” is not supported between \(firstType.name) and \
                \(secondType.name)
                """, at: position, remedy: "expected integers, or a date and a number of days")
        }
    }
}

extension Resolver.Operand {
    /// The value; a UUID in PostgreSQL's form.
    var canonical: Node { type == .storedUUID ? .uuid(node) : node }

    /// A text as a day. Columns are compared as they are.
    fileprivate var day: Node { isColumn ? node : .cast(node, .date) }

    fileprivate var isColumn: Bool {
        if case .column = node { true } else { false }
    }

    /// Whether it is a column, or what a token says.
    fileprivate var isGiven: Bool {
        switch node {
        case .column, .user, .claim, .setting, .nullIf(.claim, _): true
        default: false
        }
    }
}
