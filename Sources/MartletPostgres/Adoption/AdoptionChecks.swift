import MartletModel
import MartletProtocol
import MartletRules
import PostgresKit
import SQLiteRecords

/// Finds everything that prevents adopting tables, and changes nothing.
struct AdoptionChecks {
    /// A table that is to be adopted.
    struct Candidate {
        let table: CatalogueTable
        /// Whether the table gets one of Martlet's keys.
        let needsSurrogate: Bool
        let rows: Int64
    }

    let connection: PostgresConnection
    private(set) var problems: [AdoptionError.Problem] = []
    private(set) var candidates: [Candidate] = []
    /// The requested tables that are adopted already.
    private(set) var known: [CatalogueTable] = []
    /// The rules file that was made of the policies; nil if none was asked for.
    private(set) var rules: String?
    /// Sentences about the rules file.
    private(set) var notes: [String] = []

    init(_ connection: PostgresConnection) {
        self.connection = connection
    }

    private mutating func refuse(_ what: String, _ remedy: String) {
        problems.append(AdoptionError.Problem(what, remedy))
    }

    /// Checks the tables.
    /// - Parameters:
    ///   - request: The tables, and the choices for them.
    ///   - registered: The tables that are synchronised now.
    mutating func check(
        _ request: PostgresAdoption.Request, registered: [PostgresSchema.Registered]
    ) throws {
        let (names, surrogates) = (request.tables, request.surrogates)
        var wanted: [UInt32] = []
        var again: [UInt32] = []
        var forSurrogate: Set<UInt32> = []
        for name in names {
            guard let oid = try find(name) else { continue }
            if surrogates.contains(name) { forSurrogate.insert(oid) }
            if registered.contains(where: { $0.relation == oid }) {
                again.append(oid)
            } else if !wanted.contains(oid) {
                wanted.append(oid)
            }
        }
        for name in surrogates.subtracting(names).sorted() {
            refuse("--surrogate names “\(name)”, which is not adopted", "name it with --tables too")
        }
        let everything = try Catalogue.unambiguous(on: connection) {
            try Catalogue.read(wanted + registered.map(\.relation), on: connection)
        }
        let synchronised = Set(everything.tables.map(\.oid))
        known = everything.tables.filter { again.contains($0.oid) }
        problems += everything.tables.compactMap(\.restriction)
        // The name of a dropped table is free for another one.
        var taken = registered.filter { synchronised.contains($0.relation) }.map(\.name)
        for table in everything.tables where wanted.contains(table.oid) {
            guard checkKind(table) else { continue }
            checkName(table, among: taken)
            taken.append(table.name)
            let needsSurrogate = checkColumns(
                table, everything, allowsSurrogate: forSurrogate.contains(table.oid))
            try checkReferences(table, synchronised)
            let rows = try checkRows(table, everything)
            candidates.append(
                Candidate(table: table, needsSurrogate: needsSurrogate, rows: rows))
        }
        try checkRules(request.rules, everything, registered)
        try checkRights(isNew: registered.isEmpty)
    }

    // MARK: - Rules

    /// Makes the rules file, or checks the operator's.
    private mutating func checkRules(
        _ rules: PostgresAdoption.Rules, _ everything: Catalogue,
        _ registered: [PostgresSchema.Registered]
    ) throws {
        var tables: [RulesWriter.Table] = []
        var types: [EntityType] = []
        for table in everything.tables where table.kind == "r" {
            let name = registered.first { $0.relation == table.oid }?.name ?? table.name
            let reading = TableReading(table, in: everything)
            tables.append(RulesWriter.Table(name: name, table: table))
            types.append(
                EntityType(
                    name: name, key: reading.key?.column.name ?? MartletTables.surrogate,
                    keyKind: reading.key?.column.form.keyKind ?? .integer,
                    attributes: reading.columns.map(\.attribute),
                    keyMeaning: reading.key?.attribute.meaning ?? .plain))
        }
        switch rules {
        case .none:
            for table in tables where table.table.hasRowSecurity {
                refuse(
                    "table “\(table.table.name)” has row-level security, and devices get all rows "
                        + "without a rules file",
                    "name a file with martlet postgres adopt --rules FILE, which writes the policies "
                        + "into it, or takes those of a file that exists")
            }
            guard !registered.isEmpty else { break }
            for candidate in candidates {
                notes.append(
                    "servers with a rules file show nobody rows of “\(candidate.table.name)” until the "
                        + "file has policies for it; name the file with --rules FILE to check that")
            }
        case .ofDatabase:
            let writer = try RulesWriter(tables, Schema(types: types), on: connection)
            problems += writer.problems
            (self.rules, notes) = (writer.text, writer.notes)
        case .file(let text):
            do throws(RulesFault) {
                let program = try RulesProgram(text, schema: Schema(types: types))
                if program.showsNothing {
                    refuse(
                        "the rules file has no policy, so nobody would see anything", "write one")
                } else {
                    let new = Set(candidates.map(\.table.name))
                    for name in program.typesWithoutPolicies where new.contains(name) {
                        refuse(
                            "the rules file has no policy for “\(name)”, so nobody would see its rows",
                            RulesProgram.remedy(forTypeWithoutPolicies: name))
                    }
                }
            } catch {
                refuse("the rules file does not fit the tables: \(error)", "correct it")
            }
        }
    }

    // MARK: - One table

    /// Returns the oid of a table by its name; nil if there is none, which adds a problem.
    private mutating func find(_ name: String) throws -> UInt32? {
        let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
        let whole = try connection.query(
            """
            SELECT c.oid::bigint, n.nspname::text, pg_catalog.pg_table_is_visible(c.oid) \
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
            AND (c.relname = $1 OR n.nspname = $2 AND c.relname = $3) ORDER BY n.nspname
            """, [.text(name), .text(parts.first ?? ""), .text(parts.last ?? "")])
        var elsewhere: [String] = []
        for row in 0..<whole.count {
            let schema = try whole.text(row, 1)
            if try parts.count == 2 && schema == parts[0] || whole.boolean(row, 2) {
                return UInt32(try whole.integer(row, 0))
            }
            elsewhere.append(schema)
        }
        if let schema = elsewhere.first {
            refuse(
                "there is no table “\(name)” on the search path, but one in the schema “\(schema)”",
                "name it as \(schema).\(name)")
        } else {
            refuse(
                "there is no table “\(name)” in the database",
                "check the name, which is written as in pg_class: without quotes, in its own case")
        }
        return nil
    }

    /// Checks the kind of a table.
    /// - Returns: Whether it is a table at all. Anything else needs no further checks.
    private mutating func checkKind(_ table: CatalogueTable) -> Bool {
        let what = "table “\(table.name)”"
        switch table.kind {
        case "r": break
        case "p":
            refuse("\(what) is partitioned", "synchronise a table that is not")
        case "v", "m": refuse("“\(table.name)” is a view", "adopt the tables it reads")
        case "f":
            refuse("\(what) is a foreign table", "adopt it in the database that holds its rows")
        default: refuse("“\(table.name)” is no table", "name a table")
        }
        guard table.kind == "r" else { return false }
        if table.isPartition {
            refuse("\(what) is a partition", "synchronise a table that is none")
        } else if table.isInherited {
            refuse(
                "\(what) inherits from another table or is inherited from",
                "end that with ALTER TABLE … NO INHERIT …")
        }
        switch table.persistence {
        case "u":
            refuse(
                "\(what) is unlogged: a crash empties it, and devices would keep its rows",
                "make it permanent with ALTER TABLE … SET LOGGED")
        case "t": refuse("\(what) is temporary", "adopt a permanent table")
        default: break
        }
        if !table.isOwned {
            refuse(
                "\(what) belongs to the role “\(table.owner)”, and triggers are the owner's to add",
                "connect as that role, or grant it: GRANT \(table.owner) TO CURRENT_USER")
        }
        return true
    }

    private mutating func checkName(_ table: CatalogueTable, among names: [String]) {
        let what = "table “\(table.name)”"
        let folded = SQLName.folded(table.name)
        if ReservedWords.types.contains(table.name) {
            refuse("\(what) has the name of a word of the wire", "rename it")
        } else if folded.hasPrefix("sqlite_") {
            refuse("\(what) starts with “sqlite_”, which SQLite keeps for itself", "rename it")
        } else if let fault = TableReading.fault(inName: table.name) {
            refuse("\(what) \(fault)", "rename it")
        }
        if names.contains(where: { SQLName.folded($0) == folded }) {
            refuse(
                "another table is called “\(table.name)” too, in another schema or other case, and "
                    + "devices know a table by its name alone", "rename one, or leave one out")
        }
    }

    /// Checks the columns of a table.
    /// - Returns: Whether the table gets one of Martlet's keys.
    private mutating func checkColumns(
        _ table: CatalogueTable, _ catalogue: Catalogue, allowsSurrogate: Bool
    ) -> Bool {
        let reading = TableReading(table, in: catalogue)
        let needsSurrogate = allowsSurrogate && table.keyColumn == nil
        if !needsSurrogate { problems += reading.obstacles }
        problems += reading.leftOut
        return needsSurrogate
    }

    private mutating func checkReferences(
        _ table: CatalogueTable, _ synchronised: Set<UInt32>
    ) throws {
        for key in table.foreignKeys {
            if !synchronised.contains(key.target) {
                let rows = try connection.query(
                    "SELECT relname::text FROM pg_catalog.pg_class WHERE oid = $1::bigint::oid",
                    [.integer(Int64(key.target))])
                let target = rows.count == 1 ? try rows.text(0, 0) : "?"
                refuse(
                    "table “\(table.name)” references “\(target)” (\(key.name)), which devices do "
                        + "not have", "adopt “\(target)” too, or drop the foreign key")
            }
            if !key.isValid {
                refuse(
                    "the foreign key \(key.name) of table “\(table.name)” is NOT VALID: rows may "
                        + "refer to nothing",
                    "ALTER TABLE … VALIDATE CONSTRAINT \(PostgresConnection.quoted(key.name))")
            }
        }
    }

    /// Checks the rows' keys, and numbers that no device can receive.
    /// - Returns: The number of rows.
    private mutating func checkRows(
        _ table: CatalogueTable, _ catalogue: Catalogue
    ) throws -> Int64 {
        let mayRead = try connection.query(
            "SELECT pg_catalog.has_table_privilege($1::bigint::oid, 'SELECT')",
            [.integer(Int64(table.oid))])
        // Another problem already says that the table belongs to another role.
        guard try mayRead.boolean(0, 0) else { return 0 }
        let reading = TableReading(table, in: catalogue)
        var isBad = ["false"]
        for column in reading.columns where [.real, .double].contains(column.column.form) {
            isBad.append(
                "\(column.column.sqlName) IN ('NaN', 'Infinity', '-Infinity')")
        }
        var hasBadKey = "false"
        if let key = reading.key {
            hasBadKey =
                key.column.form.keyKind == .integer
                ? "\(key.column.sqlName) <= 0" : "\(key.column.sqlName)::text = ''"
        }
        let rows = try connection.query(
            """
            SELECT count(*), count(*) FILTER (WHERE \(isBad.joined(separator: " OR "))), \
            count(*) FILTER (WHERE \(hasBadKey)) FROM \(table.sqlName)
            """)
        if try rows.integer(0, 1) > 0 {
            refuse(
                "table “\(table.name)” has \(try rows.integer(0, 1)) rows with NaN or an infinity, "
                    + "which no device can be sent", "correct them, or make the column numeric")
        }
        if try rows.integer(0, 2) > 0 {
            refuse(
                "table “\(table.name)” has \(try rows.integer(0, 2)) rows whose key is "
                    + "not positive or is empty, and such ids are the devices' own",
                "give them other keys")
        }
        return try rows.integer(0, 0)
    }

    private mutating func checkRights(isNew: Bool) throws {
        let encoding = try connection.query("SELECT current_setting('server_encoding')").text(0, 0)
        if encoding != "UTF8" && encoding != "SQL_ASCII" {
            refuse(
                "the database's encoding is \(encoding), which lacks most of what devices may write",
                "make a database with ENCODING 'UTF8', and restore a dump of this one there")
        }
        let rows = try connection.query(
            """
            SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'), \
            pg_catalog.current_database()::text, CURRENT_USER::text, \
            (SELECT pg_catalog.pg_get_userbyid(n.nspowner)::text FROM pg_catalog.pg_namespace n \
            WHERE n.nspname = '_martlet' AND NOT pg_catalog.pg_has_role(n.nspowner, 'USAGE'))
            """)
        let (database, user) = (try rows.text(0, 1), try rows.text(0, 2))
        if !rows.isNull(0, 3) {
            let owner = try rows.text(0, 3)
            refuse(
                "the schema “_martlet” belongs to the role “\(owner)”",
                "connect as that role, or grant it: GRANT \(owner) TO \(user)")
        } else if try isNew && !rows.boolean(0, 0) {
            refuse(
                "the role “\(user)” may not create schemas in the database “\(database)”",
                "GRANT CREATE ON DATABASE \(PostgresConnection.quoted(database)) TO "
                    + PostgresConnection.quoted(user))
        }
    }
}
