/// The types that a connection has met: those of every server, and those of this database.
struct TypeCatalogue: Sendable {
    /// The lowest number of a type that a database defines. Types with lower numbers come with the
    /// server, and are known or never looked up.
    static let firstOwnNumber: UInt32 = 16_384

    private var own: [UInt32: WireType] = [:]

    subscript(number: UInt32) -> WireType {
        WireType.builtIn[number] ?? own[number] ?? .unknown
    }

    /// Whether the connection must ask the database about a type.
    func isStrange(_ number: UInt32) -> Bool {
        number >= Self.firstOwnNumber && own[number] == nil
    }

    /// Stores the database's description of a type, in the letters of `pg_type`.
    /// - Parameters:
    ///   - kind: `typtype`: e for an enumeration, d for a domain, b for a base type.
    ///   - base: The type that a domain is based on; 0 for other types.
    ///   - element: The type of an array's elements; 0 for other types.
    mutating func learn(_ number: UInt32, kind: String, base: UInt32, element: UInt32) {
        own[number] =
            switch kind {
            case "e": .text
            case "d": self[base]
            case "b" where element != 0: .array(element)
            default: .unknown
            }
    }

    /// The query for the types in a list and the types that they consist of. A domain's base type
    /// comes before the domain.
    static let query = """
        WITH RECURSIVE found AS (
            SELECT oid, typtype, typbasetype, typelem, typcategory, 0 AS depth
            FROM pg_catalog.pg_type WHERE oid = ANY ($1::oid[])
            UNION ALL
            SELECT t.oid, t.typtype, t.typbasetype, t.typelem, t.typcategory, f.depth + 1
            FROM pg_catalog.pg_type t JOIN found f
                ON t.oid <> 0 AND (t.oid = f.typbasetype OR t.oid = f.typelem)
            WHERE f.depth < 16
        )
        SELECT oid::bigint, typtype::text, typbasetype::bigint,
            CASE WHEN typcategory = 'A' THEN typelem::bigint ELSE 0 END
        FROM found ORDER BY depth DESC
        """
}
