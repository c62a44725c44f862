internal import SQLiteKit

extension Session {
    /// Refuses to save if the database's file was removed or replaced. SQLite would write to the
    /// old file until it is closed, and nobody would find that file again.
    /// - Throws: `StoreError` `.file`.
    package func checkNotMoved() throws {
        guard connection.hasMoved else { return }
        throw StoreError(
            .file,
            "The database's file was removed or replaced while it was open, so what is written now would"
                + " be lost when it is closed. What it held can still be read and sent. Then close it, put"
                + " the file back, and open it again.")
    }
}
