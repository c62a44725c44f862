/// The operators that compare.
enum Comparison: String, Hashable, Sendable {
    case equal = "="
    case unequal = "<>"
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="

    /// Returns whether the operator holds for an order: negative if the first value is the lower
    /// one, 0 if both are equal, else positive.
    func holds(_ order: Int) -> Bool {
        switch self {
        case .equal: order == 0
        case .unequal: order != 0
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        case .greaterOrEqual: order >= 0
        }
    }
}

/// The operators of arithmetic.
enum Arithmetic: String, Hashable, Sendable {
    case plus = "+"
    case minus = "-"
    case times = "*"
    case divided = "/"
    case remainder = "%"
}
