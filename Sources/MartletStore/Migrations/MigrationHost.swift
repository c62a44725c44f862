/// The work that a synchronised file needs in addition to a version's statements.
///
/// All calls are made inside the version's transaction, on the version's connection.
package protocol MigrationHost: AnyObject {
    /// Called before a version's first statement.
    func begin() throws
    /// Called before a statement that changes the schema.
    func willChangeSchema() throws
    /// Called before the version reads or writes records.
    func willUseRecords() throws
    func didRenameColumn(_ name: String, to new: String, in table: String) throws
    func willDropColumn(_ name: String, from table: String) throws
    /// Called before a table is dropped.
    /// - Throws: `StoreError` for a table that must stay.
    func willDropTable(_ name: String) throws
    /// Called after a version's last statement.
    func end() throws
}
