/// What goes on beside a version's statements in a file that is kept in step with a server.
///
/// All calls come inside the version's transaction, on the connection the version runs on.
package protocol MigrationHost: AnyObject {
    /// Before a version's first statement.
    func begin() throws
    /// Before a statement that changes the schema.
    func willChangeSchema() throws
    /// Before the version reads records, or writes them.
    func willUseRecords() throws
    func didRenameColumn(_ name: String, to new: String, in table: String) throws
    func willDropColumn(_ name: String, from table: String) throws
    /// - Throws: `StoreError` for a table that must stay.
    func willDropTable(_ name: String) throws
    /// After a version's last statement.
    func end() throws
}
