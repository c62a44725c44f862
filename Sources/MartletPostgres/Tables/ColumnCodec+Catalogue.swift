package import MartletModel

/// The result of resolving a column's type.
struct ResolvedType {
    let form: ColumnCodec
    /// The length of a varchar or char in characters; nil for no limit.
    let length: Int?
    /// Whether a domain is NOT NULL.
    let isRequired: Bool
    /// The default of a domain, as SQL.
    let standard: String?
    /// Whether the type is char(n), whose values compare without trailing spaces.
    let isPadded: Bool
}

extension Catalogue {
    /// Returns the resolved type; nil if values of the type have no form on the wire.
    func resolved(_ column: CatalogueColumn) -> ResolvedType? {
        var number = column.type
        var modifier = column.modifier
        var isRequired = false
        var standard: String?
        // If a domain is based on another domain, the outermost default and length apply.
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
    /// The kind of the attribute on devices.
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

    /// The kind of a key with this form; nil if no key can have it.
    var keyKind: EntityType.KeyKind? {
        switch self {
        case .integer: .integer
        case .text, .uuid: .text
        default: nil
        }
    }
}
