import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// An open file, with the state that is kept in memory. It is discarded after a fault.
final class EmbeddedSession {
    let connection: Connection
    let schema: Schema
    let identity: String
    let tables: [RecordTable]
    /// The number of each type in Martlet's tables, by its position in the schema.
    let numbers: [Int64]
    let cascades: CascadeMap
    /// Notes the rows that change behind the statements; nil if the schema has nothing that does
    /// so.
    let capture: RowCapture?
    let columns: [TypeColumns]
    /// Notes rows that sets leave in a state which devices cannot receive.
    let unsendable: UnsendableRows
    let bound = WorkBound()
    /// The number of records read for true rows since the file was opened.
    var truthReads = 0
    /// The number of updates read to find the effects of deletes since the file was opened.
    var updateLooks = 0

    private(set) var head: LogHead
    /// The revision up to which entries may have lost their bodies.
    var floor: Revision = 0
    /// The devices that were looked up, by client id. There may be others.
    var devices: [String: KnownDevice] = [:]
    /// The number of devices of a principal, if it has been counted.
    var deviceCounts: [String: Int] = [:]
    /// The next permanent id of each type, by position.
    private var nextIDs: [Int64]
    private var usedNumbers: Set<Int> = []
    /// The highest set number that each device used, as far as it was looked up.
    var highestSequences: [Int64: Int64] = [:]
    /// The lowest temporary id used, by device and type, as far as it was looked up. The id map has
    /// no lower one.
    private var lowestTemporaries: [RecordAddress: Int64] = [:]
    private var fileVersion: Int64 = -1
    private var openedTables = OpenedTables()
    /// True if there may be external writes that are not in the log.
    var mayHaveExternalWrites = true
    /// The number of rows that the connection had changed when the transaction began.
    private var changesAtBegin: Int64 = 0
    /// True if a part of them has been taken, and much is left.
    var isExternalParted = false

    static func connect(
        path: String, mode: Connection.Mode = .readWriteCreate, vfs: String?
    ) throws(SQLiteError) -> Connection {
        let connection = try Connection(path: path, mode: mode, vfs: vfs)
        try connection.execute(
            """
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL;
            PRAGMA foreign_keys = ON;
            PRAGMA recursive_triggers = ON;
            PRAGMA cache_size = -65536;
            PRAGMA temp_store = MEMORY;
            """)
        return connection
    }

    init(
        connection: Connection, schema: Schema, unsendable: UnsendableRows = UnsendableRows()
    ) throws(SQLiteError) {
        self.connection = connection
        self.schema = schema
        self.unsendable = unsendable
        tables = schema.types.map {
            RecordTable(type: $0, connection: connection, rowBytes: Limits.rowBytes)
        }
        columns = schema.types.map { TypeColumns($0, schema: schema) }
        cascades = CascadeMap(schema)
        numbers = try Self.numbers(schema, connection)
        identity = try connection.text("SELECT identity FROM martlet_dataset") ?? ""
        capture = try RowCapture(connection: connection, schema: schema)
        head = LogHead(revision: 0, hash: LineageHash(stored: []))
        nextIDs = []
        try reload()
        bound.watch(connection)
    }

    private static func numbers(
        _ schema: Schema, _ connection: Connection
    ) throws(SQLiteError) -> [Int64] {
        let statement = try connection.statement(
            "SELECT number FROM martlet_types WHERE name = ?1")
        defer { statement.reset() }
        var numbers: [Int64] = []
        for type in schema.types {
            statement.rewind()
            statement.bind(1, text: type.name)
            guard try statement.step() else {
                throw SQLiteError.mismatch("martlet_types lacks “\(type.name)”")
            }
            numbers.append(statement.integer(0))
        }
        return numbers
    }

    /// Reads the state that is kept in memory from the file.
    private func reload() throws(SQLiteError) {
        let dataSet = try connection.statement("SELECT revision, hash FROM martlet_dataset")
        defer { dataSet.reset() }
        guard try dataSet.step() else {
            throw SQLiteError.mismatch("martlet_dataset is empty")
        }
        head = LogHead(
            revision: dataSet.integer(0), hash: LineageHash(stored: dataSet.blob(1)))
        floor =
            try connection.integer("SELECT value FROM martlet_meta WHERE key = 'floor'") ?? 0
        devices = [:]
        deviceCounts = [:]
        let next = try connection.statement(
            "SELECT next_id FROM martlet_types WHERE number = ?1")
        nextIDs = []
        for number in numbers {
            next.rewind()
            next.bind(1, integer: number)
            nextIDs.append(try next.step() ? next.integer(0) : 1)
        }
        next.reset()
        usedNumbers = []
        highestSequences = [:]
        lowestTemporaries = [:]
        fileVersion = try connection.integer("PRAGMA data_version") ?? 0
    }
}

// MARK: - Transactions

extension EmbeddedSession {
    func begin() throws(SQLiteError) {
        try connection.begin()
        // A write by another program may have changed the state that is kept in memory.
        if try connection.integer("PRAGMA data_version") != fileVersion {
            try reload()
            mayHaveExternalWrites = true
        }
        try connection.run("UPDATE martlet_dataset SET applying = 1")
        changesAtBegin = connection.totalChanges
        try connection.deferForeignKeys()
    }

    /// Returns the fault if the tables are no longer those of the schema; see `OpenedTables`. Within a
    /// transaction no other program changes them.
    func changedTables() throws(SQLiteError) -> StorageFault? {
        try openedTables.fault(on: connection)
    }

    /// Commits the transaction. One that changed nothing writes nothing, so that it also ends on a full disk.
    func commit() throws(SQLiteError) {
        guard connection.totalChanges != changesAtBegin || !usedNumbers.isEmpty else {
            return connection.rollback()
        }
        try flush()
        try connection.commit()
    }

    /// Writes the state that is kept in memory during a transaction.
    func flush() throws(SQLiteError) {
        for type in usedNumbers {
            let statement = try connection.statement(
                "UPDATE martlet_types SET next_id = ?2 WHERE number = ?1")
            defer { statement.reset() }
            statement.bind(1, integer: numbers[type])
            statement.bind(2, integer: nextIDs[type])
            while try statement.step() {}
        }
        usedNumbers = []
        let dataSet = try connection.statement("UPDATE martlet_dataset SET hash = ?1, applying = 0")
        defer { dataSet.reset() }
        dataSet.bind(1, blob: head.hash.bytes)
        while try dataSet.step() {}
    }

    /// Raises the data set's revision by one, in its row, and returns it.
    func nextRevision() throws(SQLiteError) -> Revision {
        let statement = try connection.statement(
            "UPDATE martlet_dataset SET revision = revision + 1 RETURNING revision")
        defer { statement.reset() }
        guard try statement.step() else {
            throw SQLiteError.mismatch("martlet_dataset is empty")
        }
        let revision = statement.integer(0)
        while try statement.step() {}
        return revision
    }

    /// Adds an entry to the end of the log.
    func append(
        _ entry: LogEntry, content: [UInt8]?, now: Int64
    ) throws(SQLiteError) {
        let statement = try connection.statement(
            """
            INSERT INTO martlet_log (revision, device, identifier, sequence, content, hash, time, \
            temporaries, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """)
        defer { statement.reset() }
        statement.bind(1, integer: entry.revision)
        statement.bind(2, integer: entry.device)
        if let identifier = entry.identifier { statement.bind(3, text: identifier) }
        if let sequence = entry.sequence { statement.bind(4, integer: sequence) }
        if let content { statement.bind(5, blob: content) }
        statement.bind(6, blob: entry.hash.bytes)
        statement.bind(7, integer: now)
        if let temporaries = entry.temporaries { statement.bind(8, text: temporaries) }
        statement.bind(9, blob: entry.body)
        while try statement.step() {}
        head = LogHead(revision: entry.revision, hash: entry.hash)
        note(sequence: entry.sequence, device: entry.device)
    }
}

// MARK: - Ids

extension EmbeddedSession {
    /// The greatest id of an external row that moves the counter.
    private static let greatestFollowed = EmbeddedStore.greatestFollowedKey

    /// Returns a permanent id that no record ever had; nil if the counter is above the greatest
    /// key.
    func nextID(of type: Int) throws(SQLiteError) -> Int64? {
        var id = nextIDs[type]
        // Rows with ids this high did not move the counter. Steps that double soon pass any run of
        // them.
        var step: Int64 = 1
        while id > Self.greatestFollowed, id <= Limits.greatestKey, try isTaken(id, type) {
            id += step
            step *= 2
        }
        guard id <= Limits.greatestKey else { return nil }
        nextIDs[type] = id + 1
        usedNumbers.insert(type)
        return id
    }

    /// Returns whether a record has or had this id.
    private func isTaken(_ id: Int64, _ type: Int) throws(SQLiteError) -> Bool {
        if try tables[type].exists(.integer(id)) { return true }
        return try rowFacts(RecordAddress(type, .integer(id))) != nil
    }

    /// The id counters. They are restored when the set for which they were raised is refused,
    /// because no device has seen those ids.
    var idCounters: [Int64] {
        get { nextIDs }
        set { nextIDs = newValue }
    }

    /// Keeps the counter of a type above an id that did not come from it. It ignores ids above
    /// `greatestFollowed`, which `nextID` passes over.
    func skipIDs(of type: Int, through id: Int64) {
        guard nextIDs[type] <= id, id <= Self.greatestFollowed else { return }
        nextIDs[type] = id + 1
        usedNumbers.insert(type)
    }

    func permanentID(
        of temporary: Int64, type: Int, device: Int64
    ) throws(SQLiteError) -> RecordID? {
        let statement = try connection.statement(
            "SELECT id FROM martlet_ids WHERE device = ?1 AND type = ?2 AND temporary = ?3")
        defer { statement.reset() }
        statement.bind(1, integer: device)
        statement.bind(2, integer: numbers[type])
        statement.bind(3, integer: temporary)
        return try statement.step() ? .integer(statement.integer(0)) : nil
    }

    func isUsed(temporary: Int64, type: Int, device: Int64) throws(SQLiteError) -> Bool {
        let key = RecordAddress(type, .integer(device))
        if lowestTemporaries[key] == nil {
            let statement = try connection.statement(
                "SELECT min(temporary) FROM martlet_ids WHERE device = ?1 AND type = ?2")
            defer { statement.reset() }
            statement.bind(1, integer: device)
            statement.bind(2, integer: numbers[type])
            lowestTemporaries[key] = try statement.step() ? statement.integer(0) : 0
        }
        guard let lowest = lowestTemporaries[key], temporary >= lowest else { return false }
        return try permanentID(of: temporary, type: type, device: device) != nil
    }

    func map(
        temporary: Int64, type: Int, device: Int64, to id: Int64
    ) throws(SQLiteError) {
        let statement = try connection.statement(
            "INSERT INTO martlet_ids (device, type, temporary, id) VALUES (?1, ?2, ?3, ?4)")
        defer { statement.reset() }
        statement.bind(1, integer: device)
        statement.bind(2, integer: numbers[type])
        statement.bind(3, integer: temporary)
        statement.bind(4, integer: id)
        while try statement.step() {}
        let key = RecordAddress(type, .integer(device))
        lowestTemporaries[key] = min(lowestTemporaries[key] ?? temporary, temporary)
    }
}
