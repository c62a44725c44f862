package import MartletModel

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
        links = schema.types.map { target in
            schema.references(to: target.name).compactMap { position, _, reference in
                switch reference.onDelete {
                case .cascade, .setNull, .setDefault: Link(type: position, reference: reference)
                case .noAction, .restrict: nil
                }
            }
        }
    }

    /// The references through which deleting a record of the type changes others.
    package func links(from type: Int) -> [Link] {
        links[type]
    }
}
