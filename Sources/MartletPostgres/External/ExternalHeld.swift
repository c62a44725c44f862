import MartletModel
import MartletServerCore
import PostgresKit

/// The deletions that wait while transactions are taken in parts.
///
/// If a record is gone from its table, it may leave the log only after all records that refer to it
/// there have changed. Which records these are is unknown, but each of them has changed in the
/// tables, so it is noted. If other types may refer to a record's type, its deletion is therefore
/// noted again, under a transaction of its own. The drain takes it after everything that was noted
/// by the time of the deletion: first the records that refer to others, then those others. Records
/// that may refer to each other are taken together.
struct ExternalHeld {
    /// The number for held deletions. No transaction of the database has it, because their numbers
    /// stay far below.
    static let transaction: Int64 = 1 << 62

    static let sql = "'\(transaction)'::xid8"

    /// The SQL for whether a note `h` is held. The comparison of texts uses the index of types and
    /// ids; a comparison of transactions would find all held notes.
    static let isHeld = "h.transaction::text = '\(transaction)'"

    /// The types in groups. Types that refer to each other are in one group, which precedes the
    /// types that they refer to.
    let groups: [[Int]]
    private let referred: Set<Int>
    private let circular: Set<Int>
    /// Waits until all commits of others are noted.
    let catchUp: () -> Bool

    init(_ columns: [TypeColumns], catchUp: @escaping () -> Bool) {
        self.catchUp = catchUp
        let targets = columns.map { Set($0.references.map(\.target)) }
        referred = targets.reduce(into: []) { $0.formUnion($1) }
        let reached = targets.indices.map { Self.reached(from: $0, targets) }
        circular = Set(
            targets.indices.filter { type in
                targets[type].contains { reached[$0].contains(type) }
            })
        // A type that refers to another reaches more types than that one, unless that one refers
        // back.
        groups = Dictionary(grouping: targets.indices) { reached[$0] }
            .sorted { ($1.key.count, $0.value[0]) < ($0.key.count, $1.value[0]) }.map(\.value)
    }

    /// Returns the types that a type's records lead to by references, including itself.
    private static func reached(from type: Int, _ targets: [Set<Int>]) -> Set<Int> {
        var found: Set<Int> = [type]
        var next = [type]
        while let last = next.popLast() {
            for target in targets[last] where found.insert(target).inserted { next.append(target) }
        }
        return found
    }

    /// Returns whether a record's deletion must wait.
    func holds(_ record: ExternalRecord) -> Bool {
        record.row == .absent && record.isKnown && referred.contains(record.address.type)
    }

    /// Returns whether records of a group may refer to each other.
    func isCircular(_ group: [Int]) -> Bool { group.contains(where: circular.contains) }

    // MARK: - Statements

    /// Notes changes again as deletions that wait.
    /// - Parameter numbers: The numbers of the changes, which belong to these transactions.
    static func hold(
        _ numbers: [Int64], of transactions: [Int64], authors: [String?]
    ) -> [PostgresStatement] {
        guard !numbers.isEmpty else { return [] }
        return [
            PostgresStatement(
                """
                UPDATE _martlet.foreign_changes SET transaction = \(sql) WHERE transaction IN \
                (SELECT t::text::xid8 FROM unnest($1::bigint[]) AS t) AND number = ANY ($2::bigint[])
                """, [PendingWrites.integers(transactions), PendingWrites.integers(numbers)]),
            PostgresStatement(
                """
                INSERT INTO _martlet.foreign_transactions AS f (transaction, author, parted) \
                VALUES (\(sql), array_to_string($1::text[], ', '), true) \
                ON CONFLICT (transaction) DO UPDATE SET author = \
                (SELECT string_agg(DISTINCT a, ', ' ORDER BY a) \
                FROM unnest(string_to_array(f.author, ', ') || $1::text[]) AS a)
                """, [PendingWrites.texts(Set(authors.compactMap { $0 }).sorted())]),
        ]
    }

    /// Removes the notes of held deletions that were taken.
    /// - Parameter id: The last id of the type that was taken.
    static func taken(_ type: Int64, through id: String) -> PostgresStatement {
        PostgresStatement(
            """
            DELETE FROM _martlet.foreign_changes AS h \
            WHERE h.type = $1 AND h.id <= $2 AND \(isHeld)
            """, [.integer(type), .text(id)])
    }

    /// The statements to run when all held deletions were taken. The remaining notes are for tables
    /// that are no longer synchronised.
    static let end = [
        PostgresStatement("DELETE FROM _martlet.foreign_changes WHERE transaction = \(sql)"),
        PostgresStatement("DELETE FROM _martlet.foreign_transactions WHERE transaction = \(sql)"),
    ]

    /// Returns the author of the deletions that wait.
    /// - Returns: Nil if there are none.
    static func authors(
        on connection: PostgresConnection
    ) throws(PostgresError) -> [String?]? {
        let rows = try connection.query(
            "SELECT author FROM _martlet.foreign_transactions WHERE transaction = \(sql)")
        guard rows.count > 0 else { return nil }
        return [rows.isNull(0, 0) ? nil : try rows.text(0, 0)]
    }
}
