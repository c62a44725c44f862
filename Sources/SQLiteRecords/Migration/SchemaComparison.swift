internal import MartletModel

/// Compares two schemas, in any order of their types.
enum SchemaComparison {
    /// Checks that a schema is the wanted one.
    /// - Throws: `SchemaError` if it is not.
    static func check(_ actual: Schema, against wanted: Schema) throws(SchemaError) {
        for type in wanted.types {
            guard let made = actual[type.name] else {
                throw SchemaError(
                    """
                    table “\(type.name)” is named in another case of letters in the database; \
                    name it as it was
                    """)
            }
            let same =
                made.key == type.key && made.keyKind == type.keyKind
                && Set(made.attributes) == Set(type.attributes)
                && Set(made.references) == Set(type.references)
                && Set(made.uniques) == Set(type.uniques)
            guard same else {
                throw SchemaError(
                    """
                    table “\(type.name)” would differ from the schema in its references or unique \
                    lists after the migration; declare them as they were
                    """)
            }
        }
    }
}
