import RandomKit

/// A generated youth-sports organisation, with seventeen related types and about 110,000 records.
///
/// The same seed and size give the same records. Parents come before children and keys count from
/// 1, so a reference always names an earlier record.
public struct Organisation: Sendable {
    /// The tables as SQL DDL.
    public static let schema = OrganisationSchema.script
    /// The policies as SQL: the office sees everything, and coaches see a part.
    public static let rules = OrganisationRules.script
    /// The tables, parents first.
    public let tables: [GeneratedTable]

    /// Generates the records.
    /// - Complexity: O(*n*), *n* records; the full size takes about a second.
    public init(seed: UInt64, size: OrganisationSize = .full) {
        var generator = OrganisationGenerator(random: SplitMix64(seed: seed), size: size)
        tables = generator.tables()
    }

    /// The number of all records.
    public var recordCount: Int { tables.reduce(0) { $0 + $1.rows.count } }
}
