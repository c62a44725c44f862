import MartletModel

/// A text about a device's state that the server sends, and the device repeats: the log's hash at its
/// revision, the views whose records it has, and whether it is within a difference.
///
/// Its text is the hash, then `-v` with the numbers of views, then `-rows` with a row. A device within
/// a difference asks for rows, not entries, by repeating it.
package struct DeviceLineage: Equatable {
    var hash: String
    /// The views whose records the device may have, and at the end the one that it has reached or is
    /// about to; empty if it has only met the view that shows everything.
    var views: [Int64] = []
    /// True within a difference.
    var isUnfinished = false
    /// The row after which the device continues within a revision.
    var cursor: RowCursor?

    private static let (viewMark, rowsMark) = ("-v", "-rows")

    package init(
        hash: String, views: [Int64] = [], isUnfinished: Bool = false, cursor: RowCursor? = nil
    ) {
        self.hash = hash
        self.views = views == [View.everything] ? [] : views
        self.isUnfinished = isUnfinished
        self.cursor = cursor
    }

    /// Reads a lineage that a device names.
    init(_ text: String) {
        var rest = text[...]
        if let range = rest.firstRange(of: Self.rowsMark) {
            isUnfinished = true
            let cursor = rest[range.upperBound...]
            if cursor.hasPrefix(".") { self.cursor = RowCursor(cursor.dropFirst()) }
            rest = rest[..<range.lowerBound]
        }
        if let range = rest.firstRange(of: Self.viewMark) {
            let numbers = rest[range.upperBound...].split(
                separator: ".", omittingEmptySubsequences: false)
            views = numbers.compactMap { Int64($0) }
            // The server wrote no such text. As a hash, it equals that of no log.
            guard views.count == numbers.count else {
                hash = text
                views = []
                return
            }
            if views == [View.everything] { views = [] }
            rest = rest[..<range.lowerBound]
        }
        hash = String(rest)
    }

    /// The text that the device repeats.
    package var text: String {
        var text = hash
        if !views.isEmpty {
            text += Self.viewMark + views.map { "\($0)" }.joined(separator: ".")
        }
        if isUnfinished { text += Self.rowsMark + (cursor?.text.map { ".\($0)" } ?? "") }
        return text
    }
}
