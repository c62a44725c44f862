/// What a draft knows: the record as it was when it last agreed with the store, and as it was
/// edited since. Values in, values out; it does nothing by itself.
struct DraftState<Element: ReadableRecord & Sendable>: Sendable {
    /// How a draft stands.
    enum Phase: Sendable {
        case open
        /// The record is gone.
        case deleted
        /// To be saved as a new record.
        case new
        case discarded
    }

    var phase = Phase.open
    /// The record in the store, as the draft last heard of it.
    var base: DraftRecord<Element>
    /// The record as edited.
    var value: Element
    /// What had been typed into fields that then took the store's value.
    var superseded = RecordValues()

    init(_ record: DraftRecord<Element>) {
        base = record
        value = record.element
    }

    /// The fields that differ from the store, as edited.
    func edits(_ table: DraftTable<Element>) throws -> RecordValues {
        Self.difference(try table.values(of: value), from: base.values)
    }

    /// The values of `values` that are not the same in `other`.
    static func difference(_ values: RecordValues, from other: RecordValues) -> RecordValues {
        var difference = RecordValues()
        for (name, value) in zip(values.names, values.values) where other[name] != value {
            difference[name] = value
        }
        return difference
    }

    /// The fields that a new state of the record changes.
    /// - Parameter permanent: References whose temporary ids became permanent: no change at all.
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

    /// Takes a new state of the record, keeping what was edited as the answer says.
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

    /// Takes note that the record as it was at `saved` is in the store now; what was edited since
    /// stays edited.
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
