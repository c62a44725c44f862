internal import MartletServerCore
import SQLiteKit

/// Begins a read transaction at a moment when the rows of a data set's file equal its log.
///
/// An external write is in the tables before it is in the log. A reader that finds one waiting
/// makes the writer take it in, and begins again while the writer excludes all others.
struct ConsistentRead {
    /// The function with which the writer does that. Without it, a reader that finds a waiting
    /// write fails.
    var consistently: ConsistentReading?
    /// True if an older version may have written the file, and no newer one has opened it. It then
    /// has no notes of external writes.
    var mayBeOld = false
    /// True if the writer is asked in any case.
    var asksWriter = false

    /// Begins a read transaction on `connection` at such a moment.
    ///
    /// - Parameter tables: The tables as the server opened them.
    /// - Throws: `StorageFault` `.busy` if writes wait and there is no writer to take them in; `.changed` if
    ///   another program has changed the tables.
    func begin(on connection: Connection, _ tables: inout OpenedTables) throws(StorageFault) {
        try begin(on: connection)
        let fault: StorageFault?
        do throws(SQLiteError) {
            fault = try tables.fault(on: connection)
        } catch {
            fault = StorageFault(error)
        }
        guard let fault else { return }
        connection.rollback()
        throw fault
    }

    private func begin(on connection: Connection) throws(StorageFault) {
        do throws(SQLiteError) {
            if !asksWriter {
                if try !findsWaiting(connection) { return }
                connection.rollback()
            }
        } catch {
            connection.rollback()
            throw StorageFault(error)
        }
        guard let consistently else {
            throw StorageFault(
                .busy,
                "another program has written what is not in the log yet; a server that runs on"
                    + " the file takes it in")
        }
        try consistently { () throws(StorageFault) in
            do throws(SQLiteError) {
                _ = try findsWaiting(connection)
            } catch {
                connection.rollback()
                throw StorageFault(error)
            }
        }
    }

    /// Begins a transaction, and returns whether writes wait. This first read fixes the state that
    /// the transaction sees.
    private func findsWaiting(_ connection: Connection) throws(SQLiteError) -> Bool {
        try connection.beginReading()
        let notes = "SELECT count(*) FROM main.sqlite_schema WHERE name = 'martlet_outside'"
        if mayBeOld, try connection.integer(notes) == 0 { return false }
        return try connection.integer("SELECT EXISTS (SELECT 1 FROM main.martlet_outside)") == 1
    }
}
