internal import MartletModel

/// Compares two schemas without regard to order.
enum SchemaComparison {
    /// - Throws: `SchemaError` where `actual` is not what was `wanted`.
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
