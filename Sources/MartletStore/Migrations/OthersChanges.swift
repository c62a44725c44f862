internal import MartletCore
internal import SQLiteKit
internal import SQLiteRecords

/// The changes that other programs made to the tables since capture was set up.
///
/// Edits that were noted before are read, and sent, by the columns that the tables had then: the server need not
/// know the others.
struct OthersChanges {
    private struct Rename {
        let type: EntityType
        let number: Int64
        let name: String
        let new: String
    }

    /// The tables as they were, under the names that they have now, as far as they are still there; nil if nothing
    /// is to be done to the tables of now.
    private(set) var schema: Schema?
    /// The columns that were added, by table.
    private(set) var added: [String: Set<String>] = [:]
    private var renames: [Rename] = []
    private var forms: [NoteForm] = []

    /// Compares a store's tables with the record of them. An earlier release kept no record: then nothing is found.
    init(_ store: LocalStore) throws {
        let connection = store.connection
        let recorded = try NotedColumns(connection: connection).recorded()
        guard !recorded.present.isEmpty else { return }
        let triggers = try CaptureTriggers.present(connection)
        var types: [EntityType] = []
        var isSame = true
        for (type, number) in zip(store.schema.types, store.numbers) {
            guard var columns = recorded.present[number] ?? recorded.away[number] else {
                forms.append(NoteForm(type))
                isSame = false
                continue
            }
            for (slot, name) in Self.renamed(columns, type, number, triggers) {
                renames.append(Rename(type: type, number: number, name: columns[slot], new: name))
                columns[slot] = name
            }
            if columns == CaptureTriggers.noted(type) {
                forms.append(NoteForm(type))
            } else {
                forms.append(try NoteForm(type, noted: columns, connection))
            }
            guard recorded.present[number] != nil else {
                isSame = false
                continue
            }
            if columns != CaptureTriggers.noted(type) { isSame = false }
            let known = Set(columns)
            let new = CaptureTriggers.noted(type).filter { !known.contains($0) }
            if !new.isEmpty { added[type.name] = Set(new) }
            types.append(
                EntityType(
                    name: type.name, key: type.key, keyKind: type.keyKind,
                    attributes: type.attributes.filter { !new.contains($0.name) }))
        }
        if !isSame { schema = Schema(types: types) }
    }

    /// Returns the noted columns that have another name now, and that name. If a column is renamed, SQLite
    /// renames it in capture's triggers, too. If a table was made anew, it has no such triggers, and nothing is
    /// returned.
    private static func renamed(
        _ columns: [String], _ type: EntityType, _ number: Int64, _ triggers: [String: String]
    ) -> [(slot: Int, name: String)] {
        let now = CaptureTriggers.noted(type)
        let gone = columns.indices.filter { !now.contains(columns[$0]) }
        guard !gone.isEmpty, columns.count <= now.count,
            CaptureTriggers.notes(Array(now.prefix(columns.count)), number, triggers)
        else { return [] }
        return gone.filter { !columns.contains(now[$0]) }.map { ($0, now[$0]) }
    }

    /// Lets what is kept follow the columns to their new names, and has the store read the notes by the columns
    /// that they hold.
    func follow(_ store: LocalStore) throws {
        let stored = StoredAttributes(connection: store.connection)
        for rename in renames {
            try stored.rename(
                rename.name, to: rename.new, type: rename.type.name, rename.number)
        }
        if !forms.isEmpty { store.noteForms = forms }
    }

    /// Keeps the earlier names for all sets that are queued now. The notes are taken.
    func keepNames(_ store: LocalStore) throws {
        store.noteForms = store.schema.types.map { NoteForm($0) }
        guard !renames.isEmpty else { return }
        let next = try store.counter("nextSequence")
        for rename in renames {
            try FormerNames.keep(
                rename.name, of: rename.new, type: rename.number, before: next, store.connection)
        }
    }
}
