internal import MartletServerCore
import SQLiteKit

/// A moment at which the rows of a data set's file are what its log says.
///
/// What other programs wrote is in the tables before it is in the log. A reader that finds some of it
/// waiting has the writer take it in, and begins again while the writer keeps everybody out.
struct ConsistentRead {
    /// What has the writer do that; without it, a reader that finds something fails.
    var consistently: ConsistentReading?
    /// Whether the file may be one that an older version wrote and no newer one has opened: nothing is
    /// noted in it.
    var mayBeOld = false

    /// Begins a transaction on `connection` that reads, and sees such a moment.
    /// - Throws: `StorageFault` `.busy` where nobody can take in what waits.
    func begin(on connection: Connection) throws(StorageFault) {
        do throws(SQLiteError) {
            if try !findsWaiting(connection) { return }
            connection.rollback()
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

    /// Begins a transaction; its first read, this one, decides what it sees.
    private func findsWaiting(_ connection: Connection) throws(SQLiteError) -> Bool {
        try connection.beginReading()
        let notes = "SELECT count(*) FROM main.sqlite_schema WHERE name = 'martlet_outside'"
        if mayBeOld, try connection.integer(notes) == 0 { return false }
        return try connection.integer("SELECT EXISTS (SELECT 1 FROM main.martlet_outside)") == 1
    }
}
