package import MartletModel

/// What of a data set a device fetches first: classes of records, the first to fetch first.
///
/// Every record is in exactly one class: the first that names it, or the last, which takes what no
/// other names.
public struct SeedingPlan: Hashable, Sendable {
    /// One class as the operator names it.
    public struct Class: Hashable, Sendable {
        public var name: String
        /// By type: which of its records.
        public var types: [String: Rows]

        public init(name: String, types: [String: Rows]) {
            self.name = name
            self.types = types
        }
    }

    /// Which records of a type.
    public enum Rows: Hashable, Sendable {
        case all
        /// Those for which an SQL expression over the type's columns is true.
        case matching(String)
    }

    /// The class that takes what no other names.
    public static let restName = "rest"
    /// SQLite attaches ten files to a connection at most; one is the class for the rest.
    public static let mostClasses = 8

    /// The named classes, without the one for the rest.
    public let classes: [Class]

    /// One class with everything.
    public static let whole = SeedingPlan(classes: [])

    /// - Precondition: names are part names, each once, and not “rest”; at most `mostClasses`.
    public init(classes: [Class]) {
        precondition(classes.count <= Self.mostClasses, "more classes than files can be attached")
        self.classes = classes
    }

    /// The names of the parts, in order.
    package func parts(of schema: Schema) -> [String] {
        guard !classes.isEmpty else { return ["all"] }
        let rest = schema.types.contains { condition(of: $0.name, in: classes.count) != nil }
        return classes.map(\.name) + (rest ? [Self.restName] : [])
    }

    /// Which records of a type are in a part; nil for none, "" for all, else an SQL expression.
    /// - Parameter part: Counts from 0; the number of classes stands for the rest.
    package func condition(of type: String, in part: Int) -> String? {
        var terms: [String] = []
        if part < classes.count {
            switch classes[part].types[type] {
            case nil: return nil
            case .all: break
            case .matching(let rule): terms.append("(\(rule)) IS TRUE")
            }
        }
        for earlier in classes.prefix(part) {
            switch earlier.types[type] {
            case nil: continue
            case .all: return nil
            case .matching(let rule): terms.append("(\(rule)) IS NOT TRUE")
            }
        }
        return terms.joined(separator: " AND ")
    }
}
