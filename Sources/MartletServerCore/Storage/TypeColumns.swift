package import MartletModel

/// The facts about a type's columns that every record needs, computed once.
package final class TypeColumns {
    package let names: [String]
    package let generated: [String]
    /// The references, with the position of their target in the schema.
    package let references: [(attribute: String, target: Int)]
    /// The lists of the columns with values, by a mask of these columns, so that records share the
    /// lists.
    private var present: [UInt64: [String]] = [:]

    package init(_ type: EntityType, schema: Schema) {
        names = type.attributes.map(\.name)
        generated = type.attributes.filter(\.isGenerated).map(\.name)
        references = type.references.compactMap { reference in
            schema.index(of: reference.target).map { (reference.attribute, $0) }
        }
    }

    /// Returns a whole row without its nulls.
    package func withoutNulls(_ row: Attributes) -> Attributes {
        guard row.values.contains(.null) else { return row }
        let values = row.values.filter { $0 != .null }
        guard row.count <= UInt64.bitWidth else {
            let kept = zip(row.names, row.values).filter { $0.1 != .null }.map(\.0)
            return Attributes(names: kept, values: values)
        }
        var mask: UInt64 = 0
        for (index, value) in row.values.enumerated() where value != .null {
            mask |= 1 << UInt64(index)
        }
        if let names = present[mask] { return Attributes(names: names, values: values) }
        let kept = row.names.indices.filter { mask & 1 << UInt64($0) != 0 }.map { row.names[$0] }
        if present.count >= 256 { present.removeAll() }
        present[mask] = kept
        return Attributes(names: kept, values: values)
    }
}
