internal import SQLiteKit

extension StoreError {
    /// A constraint of the schema that a write violates.
    public struct Constraint: Hashable, Sendable {
        /// Kinds of constraints.
        public enum Kind: Hashable, Sendable {
            /// UNIQUE or PRIMARY KEY: another record has the same values.
            case unique
            /// NOT NULL.
            case notNull
            /// CHECK.
            case check
            /// FOREIGN KEY: there is no such parent, or children are in the way.
            case foreignKey
            /// A trigger refused the write by RAISE.
            case trigger
            /// What a virtual table or a function refused.
            case other
        }

        /// Which kind.
        public let kind: Kind
        /// The columns, each as “table.column”; those that hold the reference, of a foreign key.
        /// Empty where SQLite does not tell.
        public internal(set) var columns: [String] = []
        /// The name of a CHECK, or its expression; the name of a UNIQUE index on expressions; the
        /// words of a trigger.
        public internal(set) var name: String?

        init(_ kind: Kind, columns: [String]) {
            self.kind = kind
            self.columns = columns
        }

        /// What SQLite's code and words tell; nil where no constraint is violated.
        init?(_ error: SQLiteError) {
            guard error.isConstraint, !error.isTypeViolation else { return nil }
            let detail = error.message.firstRange(of: "failed: ").map {
                String(error.message[$0.upperBound...])
            }
            if error.isRaised {
                kind = .trigger
                name = error.message
            } else if error.isUniqueViolation {
                kind = .unique
                if let detail, detail.hasPrefix("index ") {
                    name = detail.split(separator: "'").dropFirst().first.map(String.init)
                } else {
                    columns = Self.list(detail)
                }
            } else if error.isNotNullViolation {
                kind = .notNull
                columns = Self.list(detail)
            } else if error.isCheckViolation {
                kind = .check
                name = detail
            } else {
                kind = error.isForeignKeyViolation ? .foreignKey : .other
            }
        }

        private static func list(_ text: String?) -> [String] {
            text.map { $0.split(separator: ", ").map(String.init) } ?? []
        }
    }
}
