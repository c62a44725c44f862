package import MartletModel
package import PostgresKit
import SQLiteRecords

/// The present synchronised tables of a database.
package struct PostgresSchema: Sendable {
    package let schema: Schema
    /// The tables in the order of `schema.types`.
    package let tables: [PostgresTable]
    /// The CREATE TABLE statements that make a device's tables in SQLite.
    package let deviceScript: String
    /// Sentences for the server's log about tables that changed since their adoption, and about
    /// columns that devices do not receive.
    package let notes: [String]
    /// The names of the types whose tables have row-level security. It does not apply to the
    /// server's role: a rules file has to say who sees which rows.
    package let rowSecured: [String]
    /// The version of the tables. A server or an adoption raises it when it finds that tables or
    /// columns were added or removed. A server that knows another version does not write.
    package let version: Int64
    /// The way in which Martlet learns of external writes.
    package let capture: ExternalCapture

    /// Reads the tables that are registered in Martlet's tables, whatever their present names are.
    ///
    /// In an open transaction it reads the state that the transaction sees.
    /// - Throws: `AdoptionError` if a table can no longer be synchronised; `PostgresError`.
    package static func read(_ connection: PostgresConnection) throws -> PostgresSchema {
        try Catalogue.unambiguous(on: connection) {
            let rows = try connection.query(
                "SELECT number, name, relation::oid::bigint FROM _martlet.types ORDER BY number")
            var registered: [Registered] = []
            for row in 0..<rows.count {
                registered.append(
                    Registered(
                        number: try rows.integer(row, 0), name: try rows.text(row, 1),
                        relation: UInt32(try rows.integer(row, 2))))
            }
            let catalogue = try Catalogue.read(registered.map(\.relation), on: connection)
            let version = try connection.query("SELECT tables FROM _martlet.dataset")
            return try make(
                registered, catalogue, version: version.count == 1 ? version.integer(0, 0) : 0,
                capture: LogicalState.read(connection) == nil ? .triggers : .logical)
        }
    }

    /// A table to synchronise, and its name on devices.
    struct Registered {
        let number: Int64
        let name: String
        let relation: UInt32
    }

    /// Makes the schema from the catalogue.
    /// - Throws: `AdoptionError` with all obstacles.
    static func make(
        _ registered: [Registered], _ catalogue: Catalogue, version: Int64,
        capture: ExternalCapture = .triggers
    ) throws(AdoptionError) -> PostgresSchema {
        var notes: [String] = []
        var problems: [AdoptionError.Problem] = []
        var members: [Member] = []
        var rowSecured: [String] = []
        for entry in registered {
            guard let table = catalogue.tables.first(where: { $0.oid == entry.relation }) else {
                notes.append(
                    """
                    table “\(entry.name)” was dropped; its records stay on devices until it is \
                    released or a table of that name is adopted
                    """)
                continue
            }
            let reading = TableReading(table, in: catalogue)
            if table.name != entry.name {
                notes.append(
                    """
                    table “\(entry.name)” is called “\(table.name)” now; devices go on calling it \
                    “\(entry.name)”
                    """)
            }
            if table.hasRowSecurity { rowSecured.append(entry.name) }
            if let restriction = table.restriction { problems.append(restriction) }
            if table.isInherited {
                notes.append(
                    """
                    table “\(entry.name)” inherits or is inherited from now: what is written to the \
                    inheriting table reaches no device; end that with ALTER TABLE … NO INHERIT …
                    """)
            }
            notes += reading.leftOut.map { "\($0.description); until then devices do not have it" }
            problems += reading.obstacles
            if let key = reading.key {
                members.append(Member(entry: entry, reading: reading, key: key))
            }
        }
        guard problems.isEmpty else { throw AdoptionError(problems) }
        let actors = Self.actors(members)
        let tables = members.map { $0.table(among: members, actors: actors) }
        return PostgresSchema(
            schema: Schema(types: tables.map(\.type)), tables: tables,
            deviceScript: zip(members, tables).map { member, table in
                DeviceScript.statement(
                    member.entry.name, key: member.key, member.reading,
                    references: table.type.references)
            }.joined(), notes: notes, rowSecured: rowSecured, version: version,
            capture: capture)
    }

    /// Sentences about row-level security for operators whose server has no policies.
    package var rowSecurityNotes: [String] {
        rowSecured.map {
            "row-level security of “\($0)” does not apply to devices: everyone reads all rows"
        }
    }

    /// Returns the tables on either side of a foreign key that changes rows and is not a reference.
    private static func actors(_ members: [Member]) -> Set<UInt32> {
        var actors: Set<UInt32> = []
        for member in members {
            let table = member.reading.table
            for key in table.foreignKeys where key.acts {
                guard member.reference(of: key, among: members) == nil else { continue }
                actors.formUnion([table.oid, key.target])
            }
        }
        return actors
    }
}

/// A table that is to become a `PostgresTable`.
private struct Member {
    let entry: PostgresSchema.Registered
    let reading: TableReading
    let key: TableReading.Column

    /// Returns the reference of a foreign key. Nil if only the database enforces it: a key of
    /// several columns, to other columns than the key, or to a table that is not synchronised.
    func reference(of foreignKey: CatalogueForeignKey, among members: [Member]) -> Reference? {
        guard let target = members.first(where: { $0.entry.relation == foreignKey.target }),
            foreignKey.targetColumns == [target.key.source.number], foreignKey.columns.count == 1,
            let column = reading.columns.first(where: { $0.source.number == foreignKey.columns[0] }
            ),
            column.attribute.kind.rawValue == target.key.column.form.keyKind?.rawValue
        else { return nil }
        let action: Reference.Action =
            switch foreignKey.onDelete {
            case "r": .restrict
            case "c": .cascade
            case "n": .setNull
            case "d": .setDefault
            default: .noAction
            }
        return Reference(
            attribute: column.column.name, target: target.entry.name, onDelete: action)
    }

    func table(among members: [Member], actors: Set<UInt32>) -> PostgresTable {
        let source = reading.table
        let type = EntityType(
            name: entry.name, key: key.column.name, keyKind: key.column.form.keyKind ?? .text,
            attributes: reading.columns.map(\.attribute),
            references: source.foreignKeys.compactMap { reference(of: $0, among: members) },
            uniques: reading.uniques.map(\.columns), keyMeaning: key.attribute.meaning)
        return PostgresTable(
            number: entry.number, relation: source.oid, schema: source.schema, type: type,
            key: key.column, columns: reading.columns.map(\.column), nextKey: reading.nextKey,
            foreignKeys: source.foreignKeys.map {
                PostgresForeignKey(name: $0.name, isDeferrable: $0.isDeferrable, target: $0.target)
            },
            changesBehind: source.hasTriggers || actors.contains(source.oid)
                || reading.columns.contains(where: \.column.isComputed),
            name: source.name)
    }
}
