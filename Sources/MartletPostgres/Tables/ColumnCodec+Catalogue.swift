package import MartletModel

/// What a column's type comes to.
struct ResolvedType {
    let form: ColumnCodec
    /// Characters of a varchar or char.
    let length: Int?
    /// Whether a domain says NOT NULL.
    let isRequired: Bool
    /// A domain's default, as SQL.
    let standard: String?
    /// Whether it is char(n), whose values compare without the spaces behind.
    let isPadded: Bool
}

extension Catalogue {
    /// nil for a type whose values have no form on the wire.
    func resolved(_ column: CatalogueColumn) -> ResolvedType? {
        var number = column.type
        var modifier = column.modifier
        var isRequired = false
        var standard: String?
        // A domain over a domain takes what is outermost.
        while let type = types[number], type.kind == "d" {
            isRequired = isRequired || type.isRequired
            standard = standard ?? type.standard
            if modifier == -1 { modifier = type.modifier }
            number = type.base
        }
        guard let type = types[number], let form = form(of: type) else { return nil }
        let hasLength = type.schema == "pg_catalog" && ["varchar", "bpchar"].contains(type.name)
        return ResolvedType(
            form: form, length: hasLength && modifier >= 4 ? modifier - 4 : nil,
            isRequired: isRequired, standard: standard,
            isPadded: type.schema == "pg_catalog" && type.name == "bpchar")
    }

    private func form(of type: CatalogueType) -> ColumnCodec? {
        if type.kind == "e" { return .enumeration(type.labels) }
        guard type.kind == "b", type.schema == "pg_catalog" else { return nil }
        if type.element != 0 {
            let element = types[type.element]
            let isKnown =
                element?.schema == "pg_catalog"
                && ["text", "varchar", "bpchar", "int2", "int4", "int8"].contains(
                    element?.name ?? "")
            return isKnown ? .array : nil
        }
        return Self.forms[type.name]
    }

    private static let forms: [String: ColumnCodec] = [
        "bool": .boolean, "int2": .integer(bytes: 2), "int4": .integer(bytes: 4),
        "int8": .integer(bytes: 8), "float4": .real, "float8": .double, "numeric": .numeric,
        "text": .text, "varchar": .text, "bpchar": .text, "uuid": .uuid, "date": .date,
        "time": .time, "timestamp": .timestamp, "timestamptz": .timestamptz, "json": .json,
        "jsonb": .jsonb, "bytea": .binary,
    ]
}

extension ColumnCodec {
    /// What devices take it as.
    package var kind: AttributeKind {
        switch self {
        case .boolean: .boolean
        case .integer: .integer
        case .real, .double: .real
        case .numeric: .numeric
        case .binary: .blob
        case .text, .uuid, .date, .time, .timestamp, .timestamptz, .json, .jsonb, .enumeration,
            .array:
            .text
        }
    }

    /// What a key of this form is; nil where none can be.
    var keyKind: EntityType.KeyKind? {
        switch self {
        case .integer: .integer
        case .text, .uuid: .text
        default: nil
        }
    }
}
