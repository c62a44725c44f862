internal import SQLiteKit

extension StoreError {
    /// A constraint of the schema that a write violates.
    public struct Constraint: Hashable, Sendable {
        /// The kinds of constraints.
        public enum Kind: Hashable, Sendable {
            /// A UNIQUE or PRIMARY KEY constraint: another record has the same values.
            case unique
            /// A NOT NULL constraint.
            case notNull
            /// A CHECK constraint.
            case check
            /// A FOREIGN KEY constraint: the parent does not exist, or children still refer to the
            /// record.
            case foreignKey
            /// A trigger refused the write by RAISE.
            case trigger
            /// A virtual table or a function refused the write.
            case other
        }

        /// The kind of the constraint.
        public let kind: Kind
        /// The columns, each as “table.column”. For a foreign key they are the columns that hold
        /// the reference. Empty if SQLite does not name them.
        public internal(set) var columns: [String] = []
        /// The name of a CHECK constraint, or its expression; the name of a UNIQUE index on
        /// expressions; or the message of a trigger.
        public internal(set) var name: String?

        init(_ kind: Kind, columns: [String]) {
            self.kind = kind
            self.columns = columns
        }

        /// Reads SQLite's code and message; nil if no constraint is violated.
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
