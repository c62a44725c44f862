package import MartletModel

/// The order in which a device first fetches the records of a data set: in classes, the first class
/// first.
///
/// Every record is in exactly one class: the first that names it, or else the last, which takes all
/// other records.
package struct SeedingPlan: Hashable, Sendable {
    /// A class as the operator defines it.
    package struct Class: Hashable, Sendable {
        package var name: String
        /// The records by type.
        package var types: [String: Rows]

        /// Makes a class of records.
        package init(name: String, types: [String: Rows]) {
            self.name = name
            self.types = types
        }
    }

    /// A choice of the records of a type.
    package enum Rows: Hashable, Sendable {
        case all
        /// The records for which an SQL expression over the type's columns is true.
        case matching(String)
    }

    /// The name of the class that takes all records that no other class names.
    package static let restName = "rest"
    /// The most named classes. SQLite attaches at most ten files to a connection, and one is the
    /// class for the rest.
    package static let mostClasses = 8

    /// The named classes, without the one for the rest.
    package let classes: [Class]

    /// The plan with one class, which has everything.
    package static let whole = SeedingPlan(classes: [])

    /// Makes a plan.
    ///
    /// - Precondition: There are at most `mostClasses`. The names are names of parts, all
    ///   different, and not “rest”.
    package init(classes: [Class]) {
        precondition(classes.count <= Self.mostClasses, "more classes than files can be attached")
        self.classes = classes
    }

    /// Returns the names of the parts, in order.
    package func parts(of schema: Schema) -> [String] {
        guard !classes.isEmpty else { return ["all"] }
        let rest = schema.types.contains { condition(of: $0.name, in: classes.count) != nil }
        return classes.map(\.name) + (rest ? [Self.restName] : [])
    }

    /// Returns the condition for the records of a type in a part: nil for none, "" for all, or an
    /// SQL expression.
    ///
    /// - Parameter part: The part's position from 0; the number of classes means the rest.
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
