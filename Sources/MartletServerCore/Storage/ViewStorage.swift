package import MartletModel
package import MartletProtocol
package import MartletRules

/// The tables of a storage in which it keeps the members of views.
///
/// All calls but `members`, `parts`, `given` and `notes` are made within the storage's open transaction. Types are
/// positions in the schema.
package protocol ViewStorage {
    /// Returns the type views with these keys, and makes those that are missing.
    func typeViews(_ keys: [TypeViewKey]) throws(StorageFault) -> [TypeView]
    /// Returns the number of the view with these parts, in the schema's order, and makes it if it is
    /// missing. It is never `View.everything`.
    ///
    /// A new number is higher than all before, and at least the time: after a restore from a backup, no
    /// view gets the number of one that was made after the backup.
    ///
    /// - Parameter now: Milliseconds since 1970.
    func viewNumber(of parts: [Int64], now: Int64) throws(StorageFault) -> Int64
    /// Returns the types with records that changed after a revision.
    func changedTypes(after revision: Revision) throws(StorageFault) -> Set<Int>
    /// Returns the records of a type that changed after a revision, with the deleted ones.
    func changedRecords(
        of type: Int, after revision: Revision
    ) throws(StorageFault) -> [RecordID]
    /// Calls `body` with the rows of a type, without rows that no device can receive, until it returns
    /// false. It may read other types' rows meanwhile.
    ///
    /// - Parameter match: A column, by its position in a `RuleRow`, and integers or texts. The column must
    ///   have one of them; nil for all rows. There may be more rows, and rows may come twice.
    func visitRows(
        of type: Int, where match: (column: Int, values: [Value])?, _ body: (RuleRow) -> Bool
    ) throws(StorageFault)
    /// Returns the records that a type view shows (true) or once showed (false).
    ///
    /// - Parameter ids: The records to look up; nil for all.
    func members(
        of view: Int64, type: Int, among ids: [RecordID]?
    ) throws(StorageFault) -> [RecordID: Bool]
    /// Notes that a type view is computed up to a revision, and that it shows other records since
    /// `moved`.
    func advance(
        _ view: Int64, type: Int, to revision: Revision, shown: [RecordID], hidden: [RecordID],
        moved: Revision
    ) throws(StorageFault)
    /// Returns whether a record has left one of these type views after a revision.
    func haveLost(_ views: [Int64], after revision: Revision) throws(StorageFault) -> Bool
    /// Returns the parts of a view, in the schema's order; nil if there is no such view.
    func parts(of view: Int64) throws(StorageFault) -> [Int64]?
    /// Notes that the devices of a principal are given a view up to a revision, or that they are given
    /// a type view, whose number is then negative.
    ///
    /// - Parameter principal: The identity of the principal.
    func give(_ view: Int64, to principal: String, at revision: Revision) throws(StorageFault)
    /// Returns the views and type views that the devices of a principal were given.
    func given(to principal: String) throws(StorageFault) -> [Int64: GivenView]
    /// Notes that a device is given another view, in place of the last one. What it confirmed before no
    /// longer counts.
    func give(_ view: Int64, toDevice device: Int64, at revision: Revision) throws(StorageFault)
    /// Returns the notes about devices, by their numbers. A device without a note was given everything.
    func notes(ofDevices devices: [Int64]) throws(StorageFault) -> [Int64: DeviceNote]
    /// Notes a device's confirmation, in place of its last one.
    func note(_ receipt: PurgeReceipt, of device: Int64, now: Int64) throws(StorageFault)
    /// Notes that a device's confirmation counts only up to an earlier revision; nil if it counts no more.
    func limit(
        confirmationOf device: Int64, to revision: Revision?
    ) throws(StorageFault)
    /// Retires all views; see `ViewScan.retirement(prefix:)`.
    func retireAll() throws(StorageFault)
    /// Returns all views, and the numbers of all type views.
    func kept() throws(StorageFault) -> (views: [KeptView], typeViews: [Int64])
    /// Removes views. Nobody keeps the time for which he was given one of them, unless it is the last that
    /// he was given.
    func removeViews(_ numbers: [Int64]) throws(StorageFault)
    /// Removes a type view, which no request finds from now on.
    ///
    /// - Parameter records: The most members that are removed now.
    /// - Returns: The number of removed members. If there are `records` of them, the type view may have more and
    ///   is still listed.
    func removeTypeView(_ number: Int64, records: Int) throws(StorageFault) -> Int
    /// Adds an entry without changes to the log.
    func appendNothing(now: Int64) throws(StorageFault) -> LogEntry
}

/// A view, as a storage keeps it.
package struct KeptView: Hashable, Sendable {
    package let number: Int64
    /// See `ViewScan.text(of:)`.
    package let parts: String
    /// The last revision at which somebody was given it.
    package let last: Revision

    package init(number: Int64, parts: String, last: Revision) {
        (self.number, self.parts, self.last) = (number, parts, last)
    }
}

/// The facts that a storage has noted about a device and its user's view.
package struct DeviceNote: Hashable, Sendable {
    /// The view that the device was given last.
    package var view: Int64
    /// The revision up to which the device's last confirmation counts; nil if there is none that counts, or
    /// if its user sees everything.
    package var confirmed: Revision?

    package init(view: Int64 = View.everything, confirmed: Revision? = nil) {
        (self.view, self.confirmed) = (view, confirmed)
    }
}

/// The time for which somebody's devices were given a view.
package struct GivenView: Hashable, Sendable {
    package var first: Revision
    package var last: Revision

    package init(first: Revision, last: Revision) {
        (self.first, self.last) = (first, last)
    }
}

extension LogEntry {
    /// Returns an entry without changes.
    package static func ofNothing(after head: LogHead, now: Int64) -> LogEntry {
        var set = ChangeSet()
        set.revision = head.revision + 1
        let body: [UInt8]
        do throws(WireFault) {
            body = try SyncCoder.encode(set)
        } catch {
            preconditionFailure("an empty set can be encoded: \(error)")
        }
        return LogEntry(
            revision: head.revision + 1, device: 0, identifier: nil, sequence: nil,
            temporaries: nil, body: body, hash: head.hash.appending(body, identifier: nil),
            time: now)
    }
}
