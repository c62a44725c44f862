package import MartletModel
internal import MartletProtocol

/// The present state of rows that changed after a revision: a difference, or a part of one.
///
/// A difference is a scan by the revision at which a row last changed, so each row has exactly one
/// position. A scan that was cut continues from the revision that it reached, whatever was written
/// meanwhile, because a row that changes again moves ahead of the cursor. Only the last part
/// (`isWhole`), on top of the earlier ones, leads to a state that the data set was in.
package struct DifferencePart: Sendable {
    /// One record.
    package struct Row: Sendable {
        /// The row's position in the scan: the revision at which it last changed, or at which a new
        /// column gave it a value.
        package let position: Revision
        package let type: String
        package let id: RecordID
        /// The record's own revision.
        package let revision: Revision
        /// All values that are not null; nil if the record is gone.
        package let attributes: Attributes?
        /// True if the record is gone from a view that shows a part of its type: it left the view, or was
        /// deleted.
        package let isHidden: Bool

        package init(
            position: Revision, type: String, id: RecordID, revision: Revision,
            attributes: Attributes?, isHidden: Bool = false
        ) {
            self.position = position
            self.type = type
            self.id = id
            self.revision = revision
            self.attributes = attributes
            self.isHidden = isHidden
        }

        /// The approximate bytes of the row in an answer. A delta of it has at most twice as many.
        package var byteCount: Int {
            64 + type.utf8.count + id.wireByteCount + (attributes?.wireByteCount ?? 0)
        }
    }

    /// The rows in order. Rows of one revision are cut only if `cursor` is set.
    package var rows: [Row]
    /// The revision up to which every change is in `rows`, or was overtaken by a later one.
    package let reached: Revision
    /// The end of the log at the moment of reading.
    package let head: LogHead
    /// The last of the rows, if its revision, which comes after `reached`, has more; else nil.
    package let cursor: RowCursor?

    /// The revision that all parts together lead to: the head's, or that of the view.
    package var end: Revision
    /// True if records of the view have changed after `end`.
    package var isOvertaken = false

    /// True if nothing is left up to `end`.
    package var isWhole: Bool { reached == end }

    package init(
        rows: [Row], reached: Revision, head: LogHead, cursor: RowCursor? = nil,
        end: Revision? = nil
    ) {
        self.rows = rows
        self.reached = reached
        self.head = head
        self.cursor = cursor
        self.end = end ?? head.revision
    }
}

extension DifferencePart {
    /// The difference as sets: whole rows under `update`, and deleted records under `delete`.
    ///
    /// If the part has deleted records and others with their keys, a set with the deleted ones comes first.
    var changeSets: [ChangeSet] {
        guard rows.contains(where: \.isHidden) else { return [changeSet(of: rows)] }
        let present = Set(rows.lazy.filter { $0.attributes != nil }.map { Key($0) })
        let remade = rows.filter { $0.attributes == nil && present.contains(Key($0)) }
        guard !remade.isEmpty else { return [changeSet(of: rows)] }
        let others = rows.filter { $0.attributes != nil || !present.contains(Key($0)) }
        return [changeSet(of: remade), changeSet(of: others)]
    }

    private struct Key: Hashable {
        let type: String
        let id: RecordID

        init(_ row: Row) { (type, id) = (row.type, row.id) }
    }

    private func changeSet(of rows: [Row]) -> ChangeSet {
        var types: [TypeChanges] = []
        var indices: [String: Int] = [:]
        for row in rows {
            let index: Int
            if let known = indices[row.type] {
                index = known
            } else {
                index = types.count
                indices[row.type] = index
                types.append(TypeChanges(name: row.type))
            }
            guard let attributes = row.attributes else {
                types[index].delete.append(row.id)
                if row.isHidden { types[index].hidden.append(row.id) }
                continue
            }
            types[index].update.append(row.id)
            types[index].entries.append(
                RecordEntry(id: row.id, revision: row.revision, attributes: attributes))
        }
        var set = ChangeSet(types: types)
        set.revision = reached
        set.isDifference = true
        return set
    }
}
