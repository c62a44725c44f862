package import MartletCore

/// Which references carry a deletion on, by the type deleted from.
package struct CascadeMap {
    /// One of them.
    package struct Link {
        /// The type that holds the reference, by its position in the schema.
        package let type: Int
        package let reference: Reference
    }

    private let links: [[Link]]

    package init(_ schema: Schema) {
        var links = [[Link]](repeating: [], count: schema.types.count)
        for (position, type) in schema.types.enumerated() {
            for reference in type.references {
                guard let target = schema.index(of: reference.target) else { continue }
                switch reference.onDelete {
                case .cascade, .setNull, .setDefault:
                    links[target].append(Link(type: position, reference: reference))
                case .noAction, .restrict: break
                }
            }
        }
        self.links = links
    }

    /// The references through which deleting a record of the type changes others.
    package func links(from type: Int) -> [Link] {
        links[type]
    }
}
