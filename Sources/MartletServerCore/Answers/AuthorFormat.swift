package import MartletModel
internal import MartletProtocol

/// The format in which a device receives a set of its own: with its identifier, its number, and the
/// temporary ids of its records.
package enum AuthorFormat {
    /// Returns the text of the temporary ids; see `LogEntry.temporaries`.
    package static func temporaries(_ ids: [RecordID?]) -> String? {
        guard ids.contains(where: { $0 != nil }) else { return nil }
        return ids.map { $0?.description ?? "" }.joined(separator: ",")
    }

    /// Returns an entry as its author receives it.
    ///
    /// A compacted entry has no records; the author acknowledged them earlier. Only an earlier
    /// release can have made an entry that is longer than a device takes. The author gets its ids
    /// and revisions only; the values come as rows, as for all other devices.
    static func bytes(of entry: LogEntry) throws(WireFault) -> [UInt8] {
        try SyncCoder.encode(form(of: entry))
    }

    /// Returns an entry as its author receives it, decoded.
    static func form(of entry: LogEntry) throws(WireFault) -> ChangeSet {
        guard !entry.body.isEmpty else {
            var set = ChangeSet()
            set.revision = entry.revision
            return form(of: entry, holding: set)
        }
        var set = try SyncCoder.decodeChangeSet(entry.body)
        if entry.body.count > Limits.entryBytes {
            for type in set.types.indices {
                for record in set.types[type].entries.indices {
                    set.types[type].entries[record].attributes = Attributes()
                }
            }
        }
        return form(of: entry, holding: set)
    }

    /// Returns an entry as its author receives it, if its set is decoded already.
    static func form(of entry: LogEntry, holding stored: ChangeSet) -> ChangeSet {
        var set = stored
        set.conflict = false
        set.identifier = entry.identifier
        set.sequence = entry.sequence
        if let temporaries = entry.temporaries {
            let ids = temporaries.split(separator: ",", omittingEmptySubsequences: false)
            var position = 0
            for type in set.types.indices {
                let created = set.types[type].create
                // A type's created records are first among its entries, in the same order.
                for index in created.indices where position < ids.count {
                    if let number = Int64(ids[position]) {
                        put(.integer(number), on: created[index], at: index, in: &set.types[type])
                    }
                    position += 1
                }
            }
        }
        return set
    }

    private static func put(
        _ old: RecordID, on id: RecordID, at index: Int, in changes: inout TypeChanges
    ) {
        if index < changes.entries.count, changes.entries[index].id == id {
            changes.entries[index].oldID = old
        } else if let found = changes.entries.firstIndex(where: { $0.id == id }) {
            changes.entries[found].oldID = old
        }
    }
}
