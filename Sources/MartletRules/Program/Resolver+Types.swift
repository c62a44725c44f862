internal import MartletModel

extension Resolver {
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
        try fitted(try resolve(left), try resolve(right), isOrder: isOrder, right.position)
    }

    /// Gives two values types that compare.
    /// - Parameter isOrder: Whether the order counts, and not only whether they are equal.
    func fitted(
        _ left: (Node, RuleType), _ right: (Node, RuleType), isOrder: Bool,
        _ position: TextPosition
    ) throws(RulesFault) -> (Node, Node) {
        switch (left.1, right.1) {
        case (.unknown, .unknown): return (left.0, right.0)
        case (.unknown, _): return (try literal(left.0, as: right.1, position), right.0)
        case (_, .unknown): return (left.0, try literal(right.0, as: left.1, position))
        case (.blob, .blob) where isOrder:
            throw RulesFault(
                "binary values have no order here", at: position, remedy: "compare with = or <>")
        case (.any, _), (_, .any): return (left.0, right.0)
        // Devices keep the days of PostgreSQL as texts.
        case (.text, .date), (.date, .text): return (left.0, right.0)
        default:
            guard left.1 == right.1 || left.1.isNumber && right.1.isNumber else {
                throw differ(left.1, right.1, position)
            }
            return (left.0, right.0)
        }
    }

    func differ(_ left: RuleType, _ right: RuleType, _ position: TextPosition) -> RulesFault {
        RulesFault(
            "a value of the type \(right.rawValue) does not compare with one of \(left.rawValue)",
            at: position, remedy: "write “::\(left.rawValue)” behind the second one if it fits")
    }

    /// Reads a text in quotes as a value of a type.
    func literal(
        _ node: Node, as type: RuleType, _ position: TextPosition
    ) throws(RulesFault) -> Node {
        guard case .constant(.text(let text)) = node else { return node }
        let value = try? RuleValue.text(text).cast(to: type == .any ? .text : type)
        guard let value else {
            throw RulesFault("the text “'\(text)'” is no \(type.rawValue)", at: position)
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
        let (node, from) = try resolve(operand)
        if from == .unknown {
            let value = try literal(node, as: type, operand.position)
            return (try limited(value, name, operand.position), type)
        }
        let isText = type == .text && name.name != "uuid"
        let isPossible =
            from == .any || from == .text || from == type && (type != .text || isText)
            || isText && [.integer, .boolean, .date].contains(from)
            || from.isNumber && type.isNumber && type != .integer
                && (from != .real || type == .real)
            || from == .boolean && type == .integer
        guard isPossible else {
            throw RulesFault(
                "a value of the type \(from.rawValue) becomes no \(name.name) here",
                at: name.position,
                remedy: "compare it as it is, or keep the other value in a column")
        }
        let value = from == type ? node : Node.cast(node, type)
        return (try limited(value, name, operand.position), type)
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
        var (first, firstType) = try resolve(left)
        var (second, secondType) = try resolve(right)
        if firstType == .unknown, secondType != .unknown {
            let type = secondType == .date && sign == .minus ? RuleType.date : .integer
            (first, firstType) = (try literal(first, as: type, left.position), type)
        }
        if secondType == .unknown {
            let type = firstType == .date ? RuleType.date : .integer
            (second, secondType) = (try literal(second, as: type, right.position), type)
        }
        // Devices keep the days of PostgreSQL as texts.
        let isDay = { (type: RuleType) in type == .text || type == .any || type == .date }
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
                “\(sign.rawValue)” is not supported between \(firstType.rawValue) and \
                \(secondType.rawValue)
                """, at: position, remedy: "expected integers, or a date and a number of days")
        }
    }
}
