/// The state of a draft: the record when it last agreed with the store, and with the edits since.
/// It is a value, and acts on nothing else.
struct DraftState<Element: ReadableRecord & Sendable>: Sendable {
    /// The phase of a draft.
    enum Phase: Sendable {
        case open
        /// The record was deleted.
        case deleted
        /// The draft will be saved as a new record.
        case new
        case discarded
    }

    var phase = Phase.open
    /// The record in the store, as the draft last saw it.
    var base: DraftRecord<Element>
    /// The record with the edits.
    var value: Element
    /// The typed values of fields that then took the store's value.
    var superseded = RecordValues()

    init(_ record: DraftRecord<Element>) {
        base = record
        value = record.element
    }

    /// Returns the fields that differ from the store, with the edited values.
    func edits(_ table: DraftTable<Element>) throws -> RecordValues {
        Self.difference(try table.values(of: value), from: base.values)
    }

    /// Returns the values of `values` that differ in `other`.
    static func difference(_ values: RecordValues, from other: RecordValues) -> RecordValues {
        var difference = RecordValues()
        for (name, value) in zip(values.names, values.values) where other[name] != value {
            difference[name] = value
        }
        return difference
    }

    /// Returns the fields that a new state of the record changes.
    /// - Parameter permanent: The references whose temporary ids became permanent; they count as no
    ///   change.
    func changes(
        to theirs: DraftRecord<Element>, permanent: DraftReferences, _ table: DraftTable<Element>
    ) throws -> [DraftNotice.Field] {
        let mine = permanent.applied(toEdited: try table.values(of: value))
        let base = permanent.applied(toBase: base.values)
        return theirs.values.names.compactMap { name in
            guard let new = theirs.values[name], let old = base[name], new != old else {
                return nil
            }
            return DraftNotice.Field(name: name, base: old, mine: mine[name] ?? old, theirs: new)
        }
    }

    /// Takes a new state of the record, and keeps the edits that the answer keeps.
    mutating func merge(
        _ theirs: DraftRecord<Element>, answer: DraftAnswer, permanent: DraftReferences,
        _ table: DraftTable<Element>
    ) throws {
        guard answer != .saveAsNew else {
            phase = .new
            return
        }
        let mine = permanent.applied(toEdited: try table.values(of: value))
        let base = permanent.applied(toBase: base.values)
        var kept = RecordValues()
        for (name, value) in zip(mine.names, mine.values) where base[name] != value {
            if answer == .keep || theirs.values[name] == base[name] {
                kept[name] = value
            } else if theirs.values[name] != value {
                superseded[name] = value
            }
        }
        var merged = theirs.element
        try merged.fill(from: kept)
        value = merged
        self.base = theirs
        phase = .open
    }

    /// Notes that the store now has the record as it was at `saved`. Later edits stay edits.
    mutating func didSave(
        _ stored: DraftRecord<Element>, saved: RecordValues, _ table: DraftTable<Element>
    ) throws {
        let since = Self.difference(try table.values(of: value), from: saved)
        var merged = stored.element
        try merged.fill(from: since)
        value = merged
        base = stored
        superseded = RecordValues()
        phase = .open
    }
}
