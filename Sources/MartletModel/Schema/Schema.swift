/// The structure of a data set: its entity types, in the order of their tables.
package struct Schema: Hashable, Sendable {
    /// The entity types.
    package let types: [EntityType]
    /// A hash, in hexadecimal, of everything in the schema that both sides must agree on.
    package let fingerprint: String
    private let positions: [String: Int]

    /// Creates a schema. If two types have equal names, a look-up by name finds the first. The
    /// readers of schemas refuse such types.
    package init(types: [EntityType]) {
        self.types = types
        positions = Dictionary(
            types.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        fingerprint = SchemaFingerprint.of(types)
    }

    /// Returns the type with a name; nil if there is none.
    package subscript(name: String) -> EntityType? {
        positions[name].map { types[$0] }
    }

    /// Returns the position of a type in `types`; nil if there is no type of that name.
    package func index(of name: String) -> Int? {
        positions[name]
    }

    /// Returns the references of all types to `target`, each with the type that holds it and that
    /// type's position.
    /// - Complexity: O(*n*), *n* types and references of the schema.
    package func references(
        to target: String
    ) -> [(position: Int, type: EntityType, reference: Reference)] {
        types.enumerated().flatMap { position, type in
            type.references.filter { $0.target == target }.map { (position, type, $0) }
        }
    }
}

/// A type of records: a table.
package struct EntityType: Hashable, Sendable {
    package let name: String
    /// The name of the key column.
    package let key: String
    /// The kind of the keys.
    package let keyKind: KeyKind
    /// The meaning of the keys when policies compare them.
    package let keyMeaning: ColumnMeaning
    /// All columns except the key, in the table's order.
    package let attributes: [Attribute]
    /// The foreign keys to other types.
    package let references: [Reference]
    /// The column lists of UNIQUE constraints and indexes, except the key's own.
    package let uniques: [[String]]
    /// Whether a constraint of the table's declaration has a conflict clause (ON CONFLICT) other
    /// than the default, which fails the statement.
    package let hasConflictClause: Bool
    private let positions: [String: Int]

    package init(
        name: String, key: String, keyKind: KeyKind, attributes: [Attribute],
        references: [Reference] = [], uniques: [[String]] = [], hasConflictClause: Bool = false,
        keyMeaning: ColumnMeaning = .plain
    ) {
        self.keyMeaning = keyMeaning
        self.hasConflictClause = hasConflictClause
        self.name = name
        self.key = key
        self.keyKind = keyKind
        self.attributes = attributes
        self.references = references
        self.uniques = uniques
        positions = Dictionary(
            attributes.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns the attribute with a name; nil if there is none, and for the key.
    package subscript(attribute name: String) -> Attribute? {
        positions[name].map { attributes[$0] }
    }

    /// Returns the position of an attribute in `attributes`; nil if there is none of that name.
    package func index(ofAttribute name: String) -> Int? {
        positions[name]
    }

    /// Returns the reference that a column holds; nil if it holds none.
    /// - Complexity: O(*n*), *n* references of the type.
    package func reference(of attribute: String) -> Reference? {
        references.first { $0.attribute == attribute }
    }

    /// The kind of a type's keys: numbers from the data set's counter, or texts such as UUIDs.
    package enum KeyKind: String, Hashable, Sendable {
        case integer
        case text
    }
}

/// A column that is not the key.
package struct Attribute: Hashable, Sendable {
    package let name: String
    package let kind: AttributeKind
    /// The meaning of the values when policies compare them.
    package let meaning: ColumnMeaning
    /// Whether the column is NOT NULL.
    package let isRequired: Bool
    /// Whether the column has a default value.
    package let hasDefault: Bool
    /// The default value; nil if there is none, or it is not a constant that is known here.
    package let defaultValue: Value?
    /// Whether the database computes the value. Devices and the server never write such a column.
    package let isGenerated: Bool
    /// Whether a numeric is stored with all its digits; if not, one with many digits would be
    /// rounded.
    package let keepsDigits: Bool

    package init(
        name: String, kind: AttributeKind, isRequired: Bool = false, hasDefault: Bool = false,
        defaultValue: Value? = nil, isGenerated: Bool = false, keepsDigits: Bool = false,
        meaning: ColumnMeaning = .plain
    ) {
        self.name = name
        self.kind = kind
        self.meaning = meaning
        self.isRequired = isRequired
        self.hasDefault = hasDefault
        self.defaultValue = defaultValue
        self.isGenerated = isGenerated
        self.keepsDigits = keepsDigits
    }

    /// Returns whether a new record has this value if it is given none.
    package func isDefault(_ value: Value) -> Bool {
        hasDefault ? value == defaultValue : value == .null
    }
}

/// The values that a column takes, and their form on the wire.
package enum AttributeKind: String, Hashable, Sendable {
    /// A JSON integer of 64 bits.
    case integer
    /// A JSON number, stored as a double.
    case real
    /// A JSON string, stored exactly.
    case text
    /// A JSON string in base64.
    case blob
    /// JSON true or false, stored as 1 or 0.
    case boolean
    /// A JSON string with a decimal number.
    case numeric
    /// A column of no declared type or of a date type: integer, real or text, as it was written.
    case any
}

/// A declared foreign key of one column to another type's key.
package struct Reference: Hashable, Sendable {
    /// The name of the column that holds the reference.
    package let attribute: String
    /// The type whose key the column holds.
    package let target: String
    package let onDelete: Action

    package init(attribute: String, target: String, onDelete: Action) {
        self.attribute = attribute
        self.target = target
        self.onDelete = onDelete
    }

    /// The database's action on a record when the record that it refers to is deleted.
    package enum Action: String, Hashable, Sendable {
        case noAction
        case restrict
        case cascade
        case setNull
        case setDefault
    }
}
