package import MartletModel
import PostgresKit

/// A table of the user's that is synchronised, as PostgreSQL describes it.
package struct PostgresTable: Hashable, Sendable {
    /// The number of the type in Martlet's tables.
    package let number: Int64
    /// The table's oid, which a renaming leaves as it is.
    package let relation: UInt32
    /// The schema it stands in, such as `public`.
    package let schema: String
    /// The table's name now. It was the type's when the table was adopted.
    package let name: String
    /// What devices know it as.
    package let type: EntityType
    package let key: PostgresColumn
    /// All columns but the key: those of `type.attributes`, in that order.
    package let columns: [PostgresColumn]
    /// An SQL expression whose value is a key never given before, such as
    /// `nextval('public.tasks_id_seq'::regclass)`; nil where devices make the keys. An INSERT that
    /// gives the key says `OVERRIDING SYSTEM VALUE`: it may be `GENERATED ALWAYS AS IDENTITY`.
    package let nextKey: String?
    /// The greatest key that a sequence is set to. It never comes to those above by itself, and set to
    /// one of them it might have no key left.
    static let greatestCounted = Int64.max / 2
    package let foreignKeys: [PostgresForeignKey]
    /// Whether something changes rows behind the statements that are run: triggers of the user's, or
    /// foreign keys that act and are not `Reference`s, or computed columns.
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

/// A column of such a table.
package struct PostgresColumn: Hashable, Sendable {
    package let name: String
    /// The declared type as SQL writes it, such as `character varying(20)`: what a text is cast to.
    package let declaration: String
    package let form: ColumnCodec
    /// Characters that a varchar or char holds; nil for no limit.
    package let length: Int?
    /// Whether PostgreSQL computes it, or keeps others from writing it: devices have it, and it is
    /// never written. Its attribute is not `isGenerated`: devices store it like any other.
    package let isComputed: Bool

    package init(
        name: String, declaration: String, form: ColumnCodec, length: Int? = nil,
        isComputed: Bool = false
    ) {
        self.name = name
        self.declaration = declaration
        self.form = form
        self.length = length
        self.isComputed = isComputed
    }

    /// The column as SQL names it.
    package var sqlName: String { PostgresConnection.quoted(name) }
}

/// A foreign key, of one column or several.
package struct PostgresForeignKey: Hashable, Sendable {
    package let name: String
    package let isDeferrable: Bool
    /// The oid of the table it points at.
    package let target: UInt32

    package init(name: String, isDeferrable: Bool, target: UInt32) {
        self.name = name
        self.isDeferrable = isDeferrable
        self.target = target
    }
}

/// How a column's values stand on the wire, and on devices.
package enum ColumnCodec: Hashable, Sendable {
    /// JSON true and false.
    case boolean
    /// smallint, integer, bigint: JSON integers of so many bytes.
    case integer(bytes: Int)
    /// JSON numbers; a `real` as the shortest decimal that names it, as PostgreSQL writes it.
    case real
    case double
    /// JSON strings of decimal numbers, with the digits PostgreSQL keeps.
    case numeric
    /// text, varchar and char: JSON strings; of char(n) with the spaces behind.
    case text
    /// Texts in the one form that PostgreSQL writes under `DateStyle = ISO`, `TimeZone = UTC`.
    case uuid, date, time, timestamp, timestamptz
    /// JSON as a text: json as it was written, jsonb as PostgreSQL writes it.
    case json, jsonb
    /// bytea: base64.
    case binary
    /// The name of one of the values.
    case enumeration([String])
    /// An array of texts or integers, as a text in PostgreSQL's form, such as `{1,2}`.
    case array
}
