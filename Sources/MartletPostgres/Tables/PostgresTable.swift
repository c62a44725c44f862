package import MartletModel
import PostgresKit

/// A synchronised table of the user, as PostgreSQL describes it.
package struct PostgresTable: Hashable, Sendable {
    /// The number of the type in Martlet's tables.
    package let number: Int64
    /// The table's oid, which renaming does not change.
    package let relation: UInt32
    /// The schema of the table, such as `public`.
    package let schema: String
    /// The present name of the table. When the table was adopted, it was the type's name.
    package let name: String
    /// The type as devices know it.
    package let type: EntityType
    package let key: PostgresColumn
    /// All columns except the key, in the order of `type.attributes`.
    package let columns: [PostgresColumn]
    /// An SQL expression for a key that was never given out, such as
    /// `nextval('public.tasks_id_seq'::regclass)`; nil if devices make the keys. An INSERT with a
    /// key needs `OVERRIDING SYSTEM VALUE`, because the key may be `GENERATED ALWAYS AS IDENTITY`.
    package let nextKey: String?
    /// The greatest key that a sequence is set to. A sequence does not reach higher keys by
    /// counting, and set to one of them it might have no key left.
    static let greatestCounted = Int64.max / 2
    package let foreignKeys: [PostgresForeignKey]
    /// Whether rows change apart from the statements: because of the user's triggers, foreign keys
    /// with actions that are not `Reference`s, or computed columns.
    package let changesBehind: Bool

    package init(
        number: Int64, relation: UInt32, schema: String, type: EntityType, key: PostgresColumn,
        columns: [PostgresColumn], nextKey: String?, foreignKeys: [PostgresForeignKey],
        changesBehind: Bool, name: String? = nil
    ) {
        self.number = number
        self.relation = relation
        self.schema = schema
        self.name = name ?? type.name
        self.type = type
        self.key = key
        self.columns = columns
        self.nextKey = nextKey
        self.foreignKeys = foreignKeys
        self.changesBehind = changesBehind
    }

    /// The table as SQL names it, with its schema.
    package var sqlName: String {
        PostgresConnection.quoted(schema) + "." + PostgresConnection.quoted(name)
    }
}

/// A column of a synchronised table.
package struct PostgresColumn: Hashable, Sendable {
    package let name: String
    /// The number of the column in its table. Renaming does not change it, and no later column gets it.
    package let number: Int64
    /// The declared type as SQL writes it, such as `character varying(20)`. Texts are cast to it.
    package let declaration: String
    package let form: ColumnCodec
    /// The most characters of a varchar or char; nil for no limit.
    package let length: Int?
    /// Whether PostgreSQL computes the column, or forbids others to write it. Devices have the
    /// column, and the server never writes it. Its attribute is not `isGenerated`, because devices
    /// store it like any other.
    package let isComputed: Bool

    package init(
        name: String, number: Int64 = 0, declaration: String, form: ColumnCodec, length: Int? = nil,
        isComputed: Bool = false
    ) {
        self.name = name
        self.number = number
        self.declaration = declaration
        self.form = form
        self.length = length
        self.isComputed = isComputed
    }

    /// The column as SQL names it.
    package var sqlName: String { PostgresConnection.quoted(name) }
}

/// A foreign key of one or more columns.
package struct PostgresForeignKey: Hashable, Sendable {
    package let name: String
    package let isDeferrable: Bool
    /// The oid of the table that it refers to.
    package let target: UInt32

    package init(name: String, isDeferrable: Bool, target: UInt32) {
        self.name = name
        self.isDeferrable = isDeferrable
        self.target = target
    }
}

/// The form of a column's values on the wire and on devices.
package enum ColumnCodec: Hashable, Sendable {
    /// The JSON values true and false.
    case boolean
    /// A smallint, integer or bigint of this many bytes, as a JSON integer.
    case integer(bytes: Int)
    /// A JSON number. A `real` is the shortest decimal that identifies it, as PostgreSQL writes it.
    case real
    case double
    /// A decimal number as a JSON string, with PostgreSQL's digits.
    case numeric
    /// A text, varchar or char as a JSON string. A char(n) includes its trailing spaces.
    case text
    /// A text in the form that PostgreSQL writes under `DateStyle = ISO`, `TimeZone = UTC`.
    case uuid, date, time, timestamp, timestamptz
    /// JSON as a text: json as it was written, jsonb as PostgreSQL writes it.
    case json, jsonb
    /// A bytea in base64.
    case binary
    /// The name of one of these values.
    case enumeration([String])
    /// An array of texts or integers, as a text in PostgreSQL's form, such as `{1,2}`.
    case array
}
