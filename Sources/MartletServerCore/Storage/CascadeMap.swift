package import MartletModel

/// The references through which a delete changes other records, by the type of the deleted record.
package struct CascadeMap {
    /// A reference.
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

    /// Returns the references through which the delete of a record of the type changes other
    /// records.
    package func links(from type: Int) -> [Link] {
        links[type]
    }
}
