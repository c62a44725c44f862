/// The reasons why tables cannot be synchronised: all problems at once.
package struct AdoptionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One problem, and what to do.
    package struct Problem: Hashable, Sendable, CustomStringConvertible {
        /// The problem, such as “table “tasks” has no primary key”.
        package let what: String
        /// The remedy, such as “add one with ALTER TABLE …”.
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

    /// Makes an error with one problem.
    package init(_ what: String, _ remedy: String) {
        self.init([Problem(what, remedy)])
    }

    /// A sentence for each problem, each on its own line.
    package var description: String { problems.map(\.description).joined(separator: "\n") }
}
