internal import MartletModel

extension RulesProgram {
    /// A type whose rows a policy reads.
    package struct SourceSummary: Hashable, Sendable {
        /// The type's name.
        package let type: String
        /// The column by which its rows are looked up; nil if all rows are read.
        package let column: String?
    }

    /// Returns the types that a policy reads besides its own row, in the order of its text.
    package func sources(of policy: Policy) -> [SourceSummary] {
        var found: [SourceSummary] = []
        for node in [policy.using, policy.check].compactMap(\.self) {
            node.visit { node in
                for source in node.query?.sources ?? [] {
                    let type = schema.types[source.type]
                    let summary = SourceSummary(
                        type: type.name, column: source.lookup.map { type.column($0.column) })
                    if !found.contains(summary) { found.append(summary) }
                }
            }
        }
        return found
    }
}

extension EntityType {
    /// The name of a column: 0 is the key, and the attributes follow.
    fileprivate func column(_ index: Int) -> String {
        index == 0 ? key : attributes[index - 1].name
    }
}
