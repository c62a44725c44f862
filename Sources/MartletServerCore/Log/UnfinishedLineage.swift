/// The lineage of an answer that is a part of a difference and not its last. A device repeats the
/// lineage to continue, and thereby asks for rows, not entries, and names the row after which they
/// continue.
enum UnfinishedLineage {
    private static let mark = "-rows"

    static func text(_ hash: LineageHash, _ cursor: RowCursor?) -> String {
        hash.text + mark + (cursor?.text.map { ".\($0)" } ?? "")
    }

    static func isNamed(_ lineage: String?) -> Bool { lineage?.contains(mark) == true }

    /// Returns the hash in a lineage that a device names, with or without the mark.
    static func hash(in lineage: String) -> String {
        parts(of: lineage).hash
    }

    /// Returns the row after which a device continues within a revision; nil if it names none.
    static func cursor(in lineage: String?) -> RowCursor? {
        guard let lineage, let text = parts(of: lineage).cursor else { return nil }
        return RowCursor(text)
    }

    private static func parts(of lineage: String) -> (hash: String, cursor: Substring?) {
        guard let range = lineage.firstRange(of: mark) else { return (lineage, nil) }
        let rest = lineage[range.upperBound...]
        return (String(lineage[..<range.lowerBound]), rest.hasPrefix(".") ? rest.dropFirst() : nil)
    }
}
