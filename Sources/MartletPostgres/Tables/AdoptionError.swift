/// Why tables cannot be synchronised: all that is wrong with them, at once.
package struct AdoptionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One thing that is wrong, and what to do.
    package struct Problem: Hashable, Sendable, CustomStringConvertible {
        /// Such as “table “tasks” has no primary key”.
        package let what: String
        /// Such as “add one with ALTER TABLE …”.
        package let remedy: String

        package init(_ what: String, _ remedy: String) {
            self.what = what
            self.remedy = remedy
        }

        package var description: String { "\(what); \(remedy)" }
    }

    package let problems: [Problem]

    package init(_ problems: [Problem]) {
        self.problems = problems
    }

    /// One problem alone.
    package init(_ what: String, _ remedy: String) {
        self.init([Problem(what, remedy)])
    }

    /// A sentence for each problem, on a line of its own.
    package var description: String { problems.map(\.description).joined(separator: "\n") }
}
