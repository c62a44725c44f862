internal import MartletModel
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Sets up Martlet's own tables and triggers in a device's file, in the caller's transaction. If
/// everything is up to date, it writes nothing.
struct DeviceFile {
    let connection: Connection

    /// Whether Martlet has set the file up.
    var isSetUp: Bool {
        get throws(SQLiteError) {
            try connection.integer(
                "SELECT 1 FROM main.sqlite_schema WHERE name = 'martlet_control'") != nil
        }
    }

    /// Returns the schema of the app's tables, without those to which another program gave other
    /// names for the time being.
    /// - Throws: `StoreError` `.schema` for tables that cannot be synchronised.
    func schema() throws -> Schema {
        let moved = try MovedTables(connection)
        try moved.check(connection)
        do {
            let schema = moved.present(try SchemaReader.read(connection))
            guard try isSetUp else { return schema }
            let taken = try TakenNames(connection, moved)
            for type in schema.types { try taken.check(type, number(of: type.name)) }
            return schema
        } catch let error as SchemaError {
            throw StoreError(.schema, error.message)
        }
    }

    /// Creates Martlet's own tables.
    /// - Throws: `StoreError` `.file` if the app's tables hold records already: they would differ
    ///   from the server's for ever, and nobody would notice.
    func install() throws {
        for type in try schema().types {
            let name = SQLName.quoted(type.name)
            if try connection.integer("SELECT 1 FROM \(name) LIMIT 1") != nil {
                throw StoreError(
                    .file,
                    "The table \(type.name) already holds records. Make a new file and load"
                        + " them into it with “martlet import”.")
            }
        }
        try connection.execute(DeviceTables.script + DeviceTables.withheld)
        try connection.execute(DeviceTables.captureTable(width: 0))
        try connection.execute(
            """
            INSERT INTO martlet_state VALUES
                ('format', \(DeviceTables.format)), ('nextSequence', 1), ('revision', 0),
                ('nextTemporaryID', \(DeviceTables.firstTemporaryID));
            """)
    }

    /// Checks the format of Martlet's own tables.
    /// - Throws: `StoreError` `.file` if this version does not know it.
    func checkFormat() throws {
        let format = try connection.integer("SELECT value FROM martlet_state WHERE name = 'format'")
        guard let format else {
            throw StoreError(
                .file,
                "Martlet's own tables in the file are damaged: martlet_state has lost its rows. Put a"
                    + " copy of the file back, or make a new file.")
        }
        guard format == DeviceTables.format else {
            throw StoreError(
                .file,
                "The file was made by another version of Martlet (form \(format), this"
                    + " one reads \(DeviceTables.format)); open it with that version.")
        }
    }

    /// Returns the number of each type in Martlet's tables; a new type gets one.
    func numbers(of schema: Schema) throws -> [Int64] {
        try schema.types.map { type in
            if let known = try number(of: type.name) { return known }
            let insert = try connection.statement("INSERT INTO martlet_types(name) VALUES (?)")
            insert.bind(1, text: type.name)
            try insert.run()
            return connection.lastInsertedRowID
        }
    }

    /// Returns the number of a type; nil if the file never had it.
    func number(of type: String) throws(SQLiteError) -> Int64? {
        let find = try connection.statement("SELECT number FROM martlet_types WHERE name = ?")
        find.bind(1, text: type)
        defer { find.reset() }
        return try find.step() ? find.integer(0) : nil
    }

    /// Returns whether capture fits the types.
    func isCaptureSetUp(of schema: Schema, numbers: [Int64]) throws -> Bool {
        guard let width = try DeviceTables.captureWidth(connection) else { return false }
        return try width >= Self.width(of: schema) && DeviceTables.areKeysBrought(connection)
            && DeviceTables.isParkingBrought(connection)
            && CaptureTriggers.areBrought(connection, to: schema.types, numbers: numbers)
            && recordedLayout() == CaptureTriggers.layout(schema.types, numbers: numbers)
            && NotedColumns(connection: connection).isRecorded(schema.types, numbers: numbers)
    }

    /// Returns the number of columns that the notes of the widest type take.
    private static func width(of schema: Schema) -> Int {
        schema.types.map { $0.attributes.count { !$0.isGenerated } }.max() ?? 0
    }

    /// Brings capture up to date with the types: the width of its table, and its triggers.
    func setUpCapture(of schema: Schema, numbers: [Int64]) throws {
        let width = try DeviceTables.captureWidth(connection) ?? 0
        for column in width..<max(width, Self.width(of: schema)) {
            try connection.execute("ALTER TABLE martlet_capture ADD COLUMN v\(column)")
        }
        try DeviceTables.bringKeys(connection)
        try DeviceTables.bringParking(connection)
        if try CaptureTriggers.bring(connection, to: schema.types, numbers: numbers) {
            try passKeys(of: schema)
        }
        try NotedColumns(connection: connection).record(schema.types, numbers: numbers)
        let layout = CaptureTriggers.layout(schema.types, numbers: numbers)
        if try recordedLayout() != layout {
            try connection.execute(
                "INSERT OR REPLACE INTO martlet_state VALUES ('layout', \(layout))")
        }
    }

    /// Moves the next temporary id below the ids of rows that were written past capture, so that
    /// none of them is used again.
    func passKeys(of schema: Schema) throws {
        var lowest = DeviceTables.firstTemporaryID + 1
        for type in schema.types where type.keyKind == .integer {
            let key = SQLName.quoted(type.key)
            let least = try connection.integer(
                "SELECT min(\(key)) FROM \(SQLName.quoted(type.name))")
            if let least, least >= DeviceTables.lowestID { lowest = min(lowest, least) }
        }
        try connection.execute(
            """
            UPDATE martlet_state SET value = \(lowest - 1)
                WHERE name = 'nextTemporaryID' AND value >= \(lowest);
            UPDATE martlet_state SET value = \(DeviceTables.lowestID / 2)
                WHERE name = 'nextTemporaryID' AND value < \(DeviceTables.lowestID);
            UPDATE martlet_state SET value = 0
                WHERE name = 'lowestNotedID' AND value < \(DeviceTables.lowestID);
            """)
    }

    /// Returns the hash of the columns in each type's notes, as the file has it; nil in a file of
    /// an earlier release.
    func recordedLayout() throws(SQLiteError) -> Int64? {
        try connection.integer("SELECT value FROM martlet_state WHERE name = 'layout'")
    }
}
