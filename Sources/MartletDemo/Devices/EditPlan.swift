import MartletModel
import MartletProtocol

/// The possible edits of the records of an unknown schema.
struct EditPlan: Sendable {
    /// A type and the attribute for marks, which is a text without UNIQUE and references.
    struct MarkColumn: Hashable, Sendable {
        let type: String
        let key: String
        let attribute: String
    }

    /// A type whose records can be created.
    struct Kind: Hashable, Sendable {
        let column: MarkColumn
        /// The values for the required attributes.
        let required: [Filling]
    }

    enum Filling: Hashable, Sendable {
        case mark(String)
        case integer(String)
        case real(String)
        case decimal(String)
        case moment(String)
        case reference(String, target: String)

        var attribute: String {
            switch self {
            case .mark(let name), .integer(let name), .real(let name), .decimal(let name),
                .moment(let name):
                name
            case .reference(let name, _): name
            }
        }
    }

    let columns: [MarkColumn]
    let kinds: [Kind]
    /// The keys of all types, from which references are drawn.
    let keys: [String: String]

    init(_ schema: Schema) {
        let columns = schema.types.compactMap(Self.markColumn)
        self.columns = columns
        kinds = columns.compactMap { column in
            schema[column.type].flatMap { Self.kind($0, column) }
        }
        keys = Dictionary(uniqueKeysWithValues: schema.types.map { ($0.name, $0.key) })
    }

    private static func markColumn(of type: EntityType) -> MarkColumn? {
        let unique = Set(type.uniques.flatMap(\.self))
        let attribute = type.attributes.first {
            $0.kind == .text && !$0.isGenerated && !unique.contains($0.name)
                && type.reference(of: $0.name) == nil
        }
        return attribute.map { MarkColumn(type: type.name, key: type.key, attribute: $0.name) }
    }

    private static func kind(_ type: EntityType, _ column: MarkColumn) -> Kind? {
        guard type.keyKind == .integer else { return nil }
        let unique = Set(type.uniques.flatMap(\.self))
        var fillings: [Filling] = []
        for attribute in type.attributes {
            let mustBeGiven = attribute.isRequired && !attribute.hasDefault
            guard mustBeGiven || unique.contains(attribute.name), !attribute.isGenerated,
                attribute.name != column.attribute
            else { continue }
            if let reference = type.reference(of: attribute.name) {
                fillings.append(.reference(attribute.name, target: reference.target))
                continue
            }
            switch attribute.kind {
            case .text: fillings.append(.mark(attribute.name))
            case .integer where !unique.contains(attribute.name):
                fillings.append(.integer(attribute.name))
            case .real where !unique.contains(attribute.name):
                fillings.append(.real(attribute.name))
            case .numeric where !unique.contains(attribute.name):
                fillings.append(.decimal(attribute.name))
            case .any where !unique.contains(attribute.name):
                fillings.append(.moment(attribute.name))
            default: return nil
            }
        }
        return Kind(column: column, required: fillings)
    }
}
