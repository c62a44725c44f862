import MartletCore

/// Which references carry a deletion on, by the type deleted from.
struct CascadeMap {
    struct Link {
        /// The type that holds the reference, by its position in the schema.
        let type: Int
        let reference: Reference
    }

    private let links: [[Link]]

    init(_ schema: Schema) {
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
    func links(from type: Int) -> [Link] {
        links[type]
    }
}
