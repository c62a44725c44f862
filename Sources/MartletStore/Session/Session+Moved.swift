internal import SQLiteKit

extension Session {
    /// Refuses to save into a file that nobody will find again: SQLite would go on writing to it until it
    /// is closed, and then it is gone.
    /// - Throws: `StoreError` `.file`.
    package func checkPlace() throws {
        guard connection.hasMoved else { return }
        throw StoreError(
            .file,
            "The database's file was removed or replaced while it was open, so what is written now would"
                + " be lost when it is closed. What it held can still be read and sent. Then close it, put"
                + " the file back, and open it again.")
    }
}
