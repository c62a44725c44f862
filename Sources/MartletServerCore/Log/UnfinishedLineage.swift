/// The lineage of an answer that is part of a difference and not its end. A device repeats it to
/// continue, and so says that rows have to follow, and after which row; entries would not do.
enum UnfinishedLineage {
    private static let mark = "-rows"

    static func text(_ hash: LineageHash, _ cursor: RowCursor?) -> String {
        hash.text + mark + (cursor?.text.map { ".\($0)" } ?? "")
    }

    static func isNamed(_ lineage: String?) -> Bool { lineage?.contains(mark) == true }

    /// The hash in what a device names, with or without the mark.
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
