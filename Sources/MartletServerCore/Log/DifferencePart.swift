package import MartletModel
internal import MartletProtocol

/// Rows as they are now, of those that changed after a revision: a difference, or the first part
/// of one.
///
/// It is a scan by the revision at which a row last changed, so each row stands in exactly one
/// place, and a scan that was cut goes on from the revision it reached, whatever was written
/// meanwhile: what changed again has moved ahead of the cursor. Only the part that ends it
/// (`isWhole`), on top of those before, leads to a state the data set was in.
package struct DifferencePart: Sendable {
    /// One record.
    package struct Row: Sendable {
        /// The revision the row stands at in the scan: the one at which it last changed, or at
        /// which a new column gave it a value.
        package let place: Revision
        package let type: String
        package let id: RecordID
        /// The record's own revision.
        package let revision: Revision
        /// Everything that is not null; nil where the record is gone.
        package let attributes: Attributes?

        package init(
            place: Revision, type: String, id: RecordID, revision: Revision,
            attributes: Attributes?
        ) {
            self.place = place
            self.type = type
            self.id = id
            self.revision = revision
            self.attributes = attributes
        }

        /// The approximate bytes of the row in an answer; as a delta, it takes at most twice as
        /// many.
        package var byteCount: Int {
            64 + type.utf8.count + id.wireByteCount + (attributes?.wireByteCount ?? 0)
        }
    }

    /// The rows in order. Rows of one revision are cut only if `cursor` is set.
    package var rows: [Row]
    /// Every change up to this revision is in `rows`, or was overtaken by a later one.
    package let reached: Revision
    /// The end of the log at the moment of reading.
    package let head: LogHead
    /// The last of the rows, if its revision, which comes after `reached`, has more; else nil.
    package let cursor: RowCursor?

    /// Whether nothing changed after `reached`.
    package var isWhole: Bool { reached == head.revision }

    package init(rows: [Row], reached: Revision, head: LogHead, cursor: RowCursor? = nil) {
        self.rows = rows
        self.reached = reached
        self.head = head
        self.cursor = cursor
    }
}

extension DifferencePart {
    /// As one set: whole rows under `update`, what is gone under `delete`.
    var changeSet: ChangeSet {
        var types: [TypeChanges] = []
        var places: [String: Int] = [:]
        for row in rows {
            let place: Int
            if let known = places[row.type] {
                place = known
            } else {
                place = types.count
                places[row.type] = place
                types.append(TypeChanges(name: row.type))
            }
            guard let attributes = row.attributes else {
                types[place].delete.append(row.id)
                continue
            }
            types[place].update.append(row.id)
            types[place].entries.append(
                RecordEntry(id: row.id, revision: row.revision, attributes: attributes))
        }
        var set = ChangeSet(types: types)
        set.revision = reached
        set.isDifference = true
        return set
    }
}
