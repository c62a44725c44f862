package import MartletModel

/// A file with which a team tests its policies: rows, people, and what these may see and do.
///
/// ```sql
/// INSERT INTO teams (id, name) VALUES (1, 'Owls'), (2, 'Jays');
/// INSERT INTO members (id, person, team_id) VALUES (1, 'ann', 1);
///
/// SET martlet.user = 'ann';
/// EXPECT ROWS 1 IN teams;
/// EXPECT UPDATE teams SET name = 'Hawks' WHERE id = 1 REFUSED;
/// ```
package struct PolicyTestFile: Sendable {
    /// One statement of the file.
    package struct Statement: Sendable {
        /// The line and the column at which it begins.
        package let line: Int
        package let column: Int
        /// The statement in one line.
        package let text: String
        package let content: Content

        /// Returns the fault of this statement.
        package func fault(_ message: String, remedy: String? = nil) -> RulesFault {
            RulesFault(message, line: line, column: column, remedy: remedy)
        }
    }

    package enum Content: Sendable {
        /// A statement of SQL that makes rows, without regard to rights.
        case rows(sql: String)
        /// The person for whom the expectations hold that follow, and the day.
        case person(Person)
        case seen(Seen)
        case write(Write)
    }

    /// A person, as the server knows him by a token.
    package struct Person: Hashable, Sendable {
        package var user: String?
        package var roles: [String] = []
        package var claims: [String: String] = [:]
        /// The day in days since 1970-01-01; nil for the present one.
        package var today: Int64?

        /// Makes a person without a user, on the present day.
        package init() {}
    }

    /// The expectation that a person sees rows of a type.
    package struct Seen: Sendable {
        package enum Expected: Hashable, Sendable {
            case count(Int)
            case ids([RecordID])
        }

        /// The position of the type in the schema.
        package let type: Int
        package let expected: Expected
        /// The condition of SQL for the rows that count; nil for all.
        package let condition: String?
    }

    /// The expectation that a person may, or may not, change rows.
    package struct Write: Sendable {
        /// INSERT, UPDATE or DELETE.
        package let command: PolicyCommand
        /// The position of the type in the schema.
        package let type: Int
        /// The attributes that the statement writes.
        package let columns: [String]
        package let sql: String
        package let isAllowed: Bool
    }

    /// The statements in their order.
    package let statements: [Statement]

    /// Reads a file.
    /// - Throws: `RulesFault`, with the line and the column, for what cannot be used.
    package init(_ text: String, schema: Schema) throws(RulesFault) {
        statements = try PolicyTestReader.statements(of: text, schema: schema)
    }
}
