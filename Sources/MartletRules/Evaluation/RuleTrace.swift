/// The rows of queries that made conditions true, as long as somebody asks for them.
///
/// An evaluation notes each row that a query binds, and takes the note back if the row leads to
/// nothing.
final class RuleTrace {
    /// A row that a query found.
    struct Row {
        /// The position of its type in the schema.
        let type: Int
        let row: RuleRow
    }

    private(set) var rows: [Row] = []

    func note(_ type: Int, _ row: RuleRow) { rows.append(Row(type: type, row: row)) }

    func add(_ more: [Row]) { rows += more }

    /// Returns the rows that were noted since there were this many.
    func rows(since mark: Int) -> [Row] { Array(rows.dropFirst(mark)) }

    /// Takes back the rows that were noted since there were this many.
    func takeBack(to mark: Int) { rows.removeLast(rows.count - mark) }
}

@available(*, unavailable)
extension RuleTrace: Sendable {}
