internal import MartletModel

/// The SQL that lists the records of a difference for people who see a part of the data set.
///
/// It has the columns `position`, `type` (a number in Martlet's tables), `id`, `own` (the record's
/// revision), `gone` and `hidden` (gone from a part of its type), and each record at most once for each
/// position. A deleted record of a part is hidden, too: it may have left the view before, and nobody knows.
/// A record is listed
///
/// - at its own revision, if the view showed it by then;
/// - at the revision at which the view began to show it, or to hide it (then it is gone);
/// - if the device has another view's records, at the revision after the device's, if only one of
///   both views shows it.
///
/// Positions may lie behind the revision of the view. Such records have changed since it was
/// computed, and nobody knows whether they are still in it.
package struct ViewScan {
    /// The words of a database.
    package struct Dialect: Sendable {
        /// The table of records, and those of announced records and of members.
        let records: String
        let announced: String
        let members: String
        /// The parameter that is the device's revision.
        let since: String

        package init(records: String, announced: String, members: String, since: String) {
            self.records = records
            self.announced = announced
            self.members = members
            self.since = since
        }
    }

    /// A view's part for each type, by the type's number; nil for the view that shows everything.
    private typealias Parts = [Int64: Int64]?

    private let held: [(parts: Parts, last: Revision)]
    private let shown: Parts
    private let types: [Int64]
    private let given: [Int64: Revision]

    /// Makes the scan.
    ///
    /// - Parameters:
    ///   - change: The views between which the device moves. What a type view hid before the device's
    ///     user was given it, and what a view showed only after he was given it last, was never shown
    ///     to him, and its ids are not told.
    ///   - types: The numbers of all types.
    ///   - parts: Returns the parts of a view, as `text(of:)` writes them; nil for the view that shows
    ///     everything.
    /// - Throws: What `parts` throws.
    package init<Failure>(
        _ change: ViewChange, types: [Int64], parts: (Int64) throws(Failure) -> String?
    ) throws(Failure) {
        self.types = types
        given = change.given
        shown = try parts(change.view.number).map(Self.parts)
        var held: [(parts: Parts, last: Revision)] = []
        for number in change.held {
            held.append((try parts(number).map(Self.parts), change.last[number] ?? 0))
        }
        self.held = held
    }

    /// Returns the text that a storage keeps for a view.
    package static func text(of parts: some Sequence<(Int64, Int64)>) -> String {
        parts.map { "\($0):\($1)" }.joined(separator: " ")
    }

    /// SQL that is true for the text of a retired view.
    static let isRetired = "parts LIKE '%r%'"

    /// Returns SQL that retires all views of a data set which was restored: people get views with other numbers,
    /// and the retired ones are only held by devices.
    ///
    /// After the copy was made, devices may have got records that entered their views then, and have left since.
    /// The copy does not know of these. It knows of a device that names a retired view whether it can tell the
    /// device all that has left: the person was given the view up to the device's revision. No confirmation of
    /// a retired view counts, and the device confirms the new one.
    ///
    /// - Parameter prefix: The prefix of Martlet's tables: `martlet_`, or the schema with a dot.
    package static func retirement(prefix: String) -> String {
        "UPDATE \(prefix)views SET parts = parts || ' r' || number WHERE NOT \(isRetired)"
    }

    /// Returns the parts of a view, in the order of the types' numbers.
    package static func parts(_ text: String, of numbers: [Int64]) -> [Int64] {
        let parts = parts(of: text)
        return numbers.map { parts[$0] ?? View.nothing }
    }

    /// Returns the numbers of the type views in the text of a view.
    static func typeViews(_ text: String) -> [Int64] {
        parts(of: text).values.filter { $0 > View.whole }.sorted()
    }

    private static func parts(of text: String) -> [Int64: Int64] {
        var parts: [Int64: Int64] = [:]
        for part in text.split(separator: " ") {
            let numbers = part.split(separator: ":").compactMap { Int64($0) }
            if numbers.count == 2 { parts[numbers[0]] = numbers[1] }
        }
        return parts
    }

    /// The type views of the view that the device is to reach.
    package var shownTypeViews: [Int64] {
        (shown ?? [:]).values.filter { $0 > View.whole }.sorted()
    }

    /// Returns the query, in no order.
    ///
    /// - Parameter membersFirst: Whether the changed records are looked for among the members of the view, in
    ///   place of the other way round. It is faster if the members are far fewer.
    package func sql(_ dialect: Dialect, membersFirst: Bool = false) -> String {
        let shown = types.map { ($0, part(of: $0, in: self.shown)) }
            .filter { $0.1 != View.nothing }
        var arms = [Self.none(dialect)]
        if !shown.isEmpty {
            // A device that has nothing has nothing to lose.
            let parts = shown.map { [$0, $1, held.isEmpty ? .max : given[$1] ?? .max] }
            let values = Self.values(parts, ["type", "view", "given"])
            if shown.contains(where: { $0.1 == View.whole }) {
                arms.append(Self.changedOfWhole(dialect, values))
            }
            if shown.contains(where: { $0.1 != View.whole }) {
                arms.append(Self.changed(dialect, values, membersFirst: membersFirst))
            }
            arms += Self.moving(dialect, values)
        }
        let (entering, leaving, deleted) = moves()
        if !entering.isEmpty {
            arms += Self.entering(dialect, Self.values(entering, ["type", "view", "held"]))
        }
        if !leaving.isEmpty {
            let moves = leaving.map {
                $0 + [given[$0[2]] ?? .max, given[$0[1]] ?? .max, last(of: $0[2], for: $0[0])]
            }
            arms += Self.leaving(
                dialect, Self.values(moves, ["type", "view", "held", "given", "began", "last"]))
        }
        if !deleted.isEmpty {
            arms.append(Self.deleted(dialect, Self.values(deleted, ["type", "held"])))
        }
        return arms.joined(separator: " UNION ALL ")
    }

    private func part(of type: Int64, in parts: Parts) -> Int64 {
        guard let parts else { return View.whole }
        return parts[type] ?? View.nothing
    }

    /// Returns the last revision at which the device's user was given a type view.
    private func last(of view: Int64, for type: Int64) -> Revision {
        held.filter { part(of: type, in: $0.parts) == view }.map(\.last).max() ?? 0
    }

    /// Returns the types whose part changes: with the new part, and the old one. The last ones are shown whole
    /// from now on.
    private func moves() -> (entering: [[Int64]], leaving: [[Int64]], deleted: [[Int64]]) {
        var (entering, leaving, deleted): ([[Int64]], [[Int64]], [[Int64]]) = ([], [], [])
        guard !held.isEmpty else { return (entering, leaving, deleted) }
        for type in types {
            let new = part(of: type, in: shown)
            let old = Set(held.map { part(of: type, in: $0.parts) })
            guard old != [new] else { continue }
            // Of several views nobody knows which records the device has.
            let sure = old.count == 1 ? old.first ?? View.nothing : View.nothing
            if new != View.nothing, sure != View.whole { entering.append([type, new, sure]) }
            for part in old.sorted() where part > View.whole && part != new {
                if new == View.whole {
                    deleted.append([type, part])
                } else {
                    leaving.append([type, new, part])
                }
            }
        }
        return (entering, leaving, deleted)
    }

    /// Returns a table of numbers.
    private static func values(_ lines: [[Int64]], _ names: [String]) -> String {
        let rows = lines.map { "(\($0.map { "\($0)" }.joined(separator: ", ")))" }
        let columns = names.enumerated().map { "column\($0 + 1) AS \($1)" }
        return """
            (SELECT \(columns.joined(separator: ", ")) \
            FROM (VALUES \(rows.joined(separator: ", "))) AS v)
            """
    }

    /// The records that changed of types that the view shows whole.
    private static func changedOfWhole(_ d: Dialect, _ parts: String) -> String {
        """
        SELECT r.revision, r.type, r.id, r.revision, r.deleted, FALSE \
        FROM \(d.records) AS r CROSS JOIN \(parts) AS p \
        WHERE r.revision > \(d.since) AND p.type = r.type AND p.view = 0
        """
    }

    /// The records that changed while type views showed them.
    private static func changed(
        _ d: Dialect, _ parts: String, membersFirst: Bool
    ) -> String {
        // SQLite joins in the order of the text.
        let changed =
            membersFirst
            ? """
            \(parts) AS p CROSS JOIN \(d.members) AS w CROSS JOIN \(d.records) AS r \
            WHERE p.view > 0 AND w.view = p.view AND r.type = p.type AND r.id = w.id
            """
            : """
            \(d.records) AS r CROSS JOIN \(parts) AS p CROSS JOIN \(d.members) AS w \
            WHERE p.view > 0 AND p.type = r.type AND w.view = p.view AND w.id = r.id
            """
        return """
            SELECT r.revision, r.type, r.id, r.revision, r.deleted, r.deleted FROM \(changed) \
            AND r.revision > \(d.since) AND w.shown AND w.moved <= r.revision
            """
    }

    /// The records that enter type views or leave them, and those that got a value by a new column.
    private static func moving(_ d: Dialect, _ parts: String) -> [String] {
        let member = "LEFT JOIN \(d.members) AS w ON w.view = p.view AND w.id = r.id"
        return [
            """
            SELECT w.moved, p.type, w.id, coalesce(r.revision, w.moved), \
            coalesce(r.deleted OR NOT w.shown, TRUE), coalesce(r.deleted OR NOT w.shown, TRUE) \
            FROM \(parts) AS p CROSS JOIN \(d.members) AS w \
            LEFT JOIN \(d.records) AS r ON r.type = p.type AND r.id = w.id \
            WHERE p.view > 0 AND w.view = p.view AND w.moved > \(d.since) \
            AND (w.shown AND r.revision < w.moved OR NOT w.shown AND w.moved > p.given)
            """,
            """
            SELECT a.revision, a.type, a.id, r.revision, r.deleted, r.deleted AND p.view > 0 \
            FROM \(d.announced) AS a CROSS JOIN \(d.records) AS r CROSS JOIN \(parts) AS p \(member) \
            WHERE a.revision > \(d.since) AND r.type = a.type AND r.id = a.id \
            AND p.type = r.type AND r.revision <= \(d.since) \
            AND (p.view = 0 OR (w.shown AND w.moved <= \(d.since)))
            """,
        ]
    }

    /// The records of types whose part changed that the old part did not show.
    private static func entering(_ d: Dialect, _ moves: String) -> [String] {
        let unsure = """
            (m.held < 0 OR NOT EXISTS (SELECT 1 FROM \(d.members) AS h WHERE h.view = m.held \
            AND h.id = r.id AND h.shown AND h.moved <= \(d.since)))
            """
        return [
            """
            SELECT \(d.since) + 1, m.type, r.id, r.revision, r.deleted, r.deleted \
            FROM \(moves) AS m CROSS JOIN \(d.members) AS w CROSS JOIN \(d.records) AS r \
            WHERE m.view > 0 AND w.view = m.view AND w.shown AND w.moved <= \(d.since) \
            AND r.type = m.type AND r.id = w.id AND r.revision <= \(d.since) AND \(unsure)
            """,
            """
            SELECT \(d.since) + 1, m.type, r.id, r.revision, r.deleted, FALSE \
            FROM \(moves) AS m CROSS JOIN \(d.records) AS r \
            WHERE m.view = 0 AND r.type = m.type AND r.revision <= \(d.since) AND NOT r.deleted \
            AND \(unsure)
            """,
        ]
    }

    /// The records of types whose part changed that the device may have and the new part hides. What the
    /// new part has hidden since the user was given it is listed at the revision at which it left.
    ///
    /// A device that is within a difference may have records of the revision after its own. The user was
    /// then given the view at that revision.
    private static func leaving(_ d: Dialect, _ moves: String) -> [String] {
        let hidden = """
            (w.id IS NULL OR (NOT w.shown AND (w.moved <= \(d.since) OR w.moved <= m.began)))
            """
        return [
            """
            SELECT \(d.since) + 1, m.type, h.id, h.moved, TRUE, TRUE \
            FROM \(moves) AS m CROSS JOIN \(d.members) AS h \
            LEFT JOIN \(d.members) AS w ON w.view = m.view AND w.id = h.id \
            WHERE m.held > 0 AND h.view = m.held AND h.first <= \(d.since) + 1 \
            AND h.first <= m.last \
            AND (h.shown OR h.moved > \(d.since) AND h.moved > m.given) AND \(hidden)
            """
        ]
    }

    /// The records of types that are shown whole from now on, which were deleted before the device's
    /// revision. The old part is known to have lost them only since a later one, so the device may have them.
    private static func deleted(_ d: Dialect, _ moves: String) -> String {
        """
        SELECT \(d.since) + 1, m.type, h.id, coalesce(r.revision, h.moved), TRUE, FALSE \
        FROM \(moves) AS m CROSS JOIN \(d.members) AS h \
        LEFT JOIN \(d.records) AS r ON r.type = m.type AND r.id = h.id \
        WHERE h.view = m.held AND NOT h.shown AND h.moved > \(d.since) \
        AND coalesce(r.deleted, TRUE) AND coalesce(r.revision, 0) <= \(d.since)
        """
    }

    /// A query without a record, which names the columns.
    private static func none(_ d: Dialect) -> String {
        """
        SELECT r.revision AS position, r.type AS type, r.id AS id, r.revision AS own, \
        r.deleted AS gone, FALSE AS hidden FROM \(d.records) AS r WHERE r.revision > \(d.since) AND FALSE
        """
    }
}
