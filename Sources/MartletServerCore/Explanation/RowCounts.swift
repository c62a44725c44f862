import MartletModel
package import MartletRules

/// How many rows of each type somebody sees.
package struct RowCounts: Hashable, Sendable {
    /// The identity of the principal (`Principal.identity`).
    package let identity: String
    /// The numbers of rows, in the order of the schema's types.
    package let counts: [Int]

    package init(identity: String, counts: [Int]) {
        (self.identity, self.counts) = (identity, counts)
    }
}

extension RecordSource {
    /// Counts the rows that a person sees by policies.
    ///
    /// - Parameters:
    ///   - policies: The policies, read against the schema of the source.
    ///   - now: Milliseconds since 1970.
    /// - Complexity: O(*n*) in the rows of the data set. One type is in memory at a time.
    package func counts(
        for person: Principal, by policies: RulesProgram, now: Int64
    ) throws -> RowCounts {
        let rights = RowRights(policies, of: person, now: now)
        let evaluator = rights.evaluator(over: RowLookups(rows(of:where:isAmong:)))
        let counts = try schema.types.indices.map { type in
            switch policies.extent(of: type, for: rights.viewer) {
            case .nothing: 0
            case .whole: try rows(of: type, where: 0, isAmong: nil).count
            case .judged:
                try rows(of: type, where: 0, isAmong: nil).count {
                    try evaluator.maySelect($0, of: type)
                }
            }
        }
        return RowCounts(identity: person.identity, counts: counts)
    }

    /// Counts the rows that the devices of each principal were given last, in the order of the
    /// identities. It judges nothing. A person who sees everything is not listed, because no view is
    /// noted for him.
    package func givenCounts() throws -> [RowCounts] {
        var whole: [Int: Int] = [:]
        return try givenViews().sorted { $0.key < $1.key }.map { identity, parts in
            let counts = try parts.enumerated().map { type, part in
                switch part {
                case View.nothing: return 0
                case View.whole:
                    let count = try whole[type] ?? rows(of: type, where: 0, isAmong: nil).count
                    whole[type] = count
                    return count
                default: return try shownCount(of: part)
                }
            }
            return RowCounts(identity: identity, counts: counts)
        }
    }
}
