package import MartletModel
internal import MartletProtocol
import OpenSSLKit

/// A row within one revision of a difference. Rows up to it have been sent.
package struct RowCursor: Hashable, Comparable, Sendable {
    /// The type's number in Martlet's tables.
    package let type: Int64
    package let id: RecordID

    package init(type: Int64, id: RecordID) {
        self.type = type
        self.id = id
    }

    package static func < (left: RowCursor, right: RowCursor) -> Bool {
        (left.type, left.id) < (right.type, right.id)
    }

    /// The most UTF-8 bytes of a text key that a cursor can name.
    private static let keyBytes = 36

    /// The text in a lineage, of letters, digits, dots and hyphens; nil if the key is too long.
    var text: String? {
        switch id {
        case .integer(let number): return "\(type).i\(number)"
        case .text(let text):
            guard text.utf8.count <= Self.keyBytes else { return nil }
            return "\(type).t" + Hexadecimal.text(Array(text.utf8))
        }
    }

    /// Reads a cursor from `text`; returns nil for any other text.
    init?(_ text: Substring) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let type = Int64(parts[0]) else { return nil }
        self.type = type
        let name = parts[1].dropFirst()
        switch parts[1].first {
        case "i":
            guard let number = Int64(name) else { return nil }
            id = .integer(number)
        case "t":
            guard let bytes = Hexadecimal.bytes(String(name)) else { return nil }
            id = .text(String(decoding: bytes, as: UTF8.self))
        default: return nil
        }
    }
}

/// The start of a difference, and the size of the part that is wanted.
package struct DifferenceRequest: Sendable {
    /// The revision after which rows have changed.
    package let since: Revision
    /// The row up to which the revision after `since` has been sent.
    package let cursor: RowCursor?
    /// The approximate bytes of rows on the wire after which the part ends with the current
    /// revision.
    package let maxBytes: Int
    /// The bytes at which the part ends within a revision; at least one row is sent.
    package let partBytes: Int
    /// True if the rows of a revision are sent together or not at all. The part then ends before a
    /// revision with more than `partBytes`.
    package let keepsRevisions: Bool
    /// The views between which the device moves; nil if it sees everything, and has.
    package let views: ViewChange?

    package init(
        since: Revision, cursor: RowCursor? = nil, maxBytes: Int,
        partBytes: Int = Limits.differenceBytes, keepsRevisions: Bool = false,
        views: ViewChange? = nil
    ) {
        self.views = views
        self.keepsRevisions = keepsRevisions
        self.since = since
        self.cursor = cursor
        self.maxBytes = maxBytes
        self.partBytes = partBytes
    }
}

/// Gathers the rows of one part of a difference, in the same way for every storage.
package struct GatheredDifference {
    private let request: DifferenceRequest
    private let head: LogHead
    private var rows: [DifferencePart.Row] = []
    private var last: RowCursor?
    /// The rows that are at their position because a new column gave them a value. Several columns may
    /// have announced one row, at several revisions.
    private var announced: Set<RowCursor> = []
    /// The records that are gone from a view. The key of one may have been given to others, several times.
    private var hidden: Set<RowCursor> = []
    private var bytes = 0
    /// True if the records of the view go on behind the part's end.
    private var isOvertaken = false

    package init(_ request: DifferenceRequest, head: LogHead) {
        self.request = request
        self.head = head
    }

    /// Notes that a record of the view has changed since the view was computed. Nobody knows whether
    /// it is still in the view.
    package mutating func noteOvertaken() { isOvertaken = true }

    /// Returns whether the earlier part has sent a row.
    package func isTold(_ row: RowCursor, at position: Revision) -> Bool {
        guard let cursor = request.cursor else { return false }
        return position == request.since + 1 && row <= cursor
    }

    /// Returns the part if it ends before a row of this revision, whatever the row's size.
    package func part(endingBefore position: Revision) -> DifferencePart? {
        guard let before = rows.last?.position, before != position, bytes >= request.maxBytes
        else {
            return nil
        }
        return DifferencePart(rows: rows, reached: before, head: head)
    }

    /// Adds a row, or returns the part that ends before it. A row that is present already is not
    /// added again, because its state is the same at every position.
    package mutating func add(
        _ row: DifferencePart.Row, number type: Int64
    ) -> DifferencePart? {
        let cursor = RowCursor(type: type, id: row.id)
        guard !announced.contains(cursor) else { return nil }
        // Several views may have shown a record that none shows any more.
        guard cursor != last || row.position != rows.last?.position else { return nil }
        guard !row.isHidden || !hidden.contains(cursor) else { return nil }
        let count = row.byteCount
        if let before = rows.last?.position, let last, bytes + count > request.partBytes {
            if before != row.position {
                return DifferencePart(rows: rows, reached: before, head: head)
            }
            if request.keepsRevisions {
                rows.removeAll { $0.position == row.position }
                return DifferencePart(rows: rows, reached: row.position - 1, head: head)
            }
            // The part ends within the revision only if a cursor can name the key. Otherwise it
            // takes the whole revision.
            if last.text != nil {
                return DifferencePart(
                    rows: rows, reached: row.position - 1, head: head, cursor: last)
            }
        }
        rows.append(row)
        if row.position != row.revision { announced.insert(cursor) }
        if row.isHidden { hidden.insert(cursor) }
        last = cursor
        bytes += count
        return nil
    }

    /// Returns the part that reaches a revision after which there are no more rows.
    package func part(reaching revision: Revision) -> DifferencePart {
        var part = DifferencePart(rows: rows, reached: revision, head: head)
        part.isOvertaken = isOvertaken
        if request.views != nil { part.end = revision }
        return part
    }
}
