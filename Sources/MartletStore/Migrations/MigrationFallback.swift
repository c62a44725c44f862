/// The action if a version cannot be run.
///
/// With each action, the file is first as the version before left it. The fallback applies to files
/// that have been in use; for a new file, the failure is thrown. The failure is also thrown if
/// waiting or making room helps: if another program has locked the file, and, with `refetch`, if
/// the disk is full or fails.
public enum MigrationFallback: Hashable, Sendable {
    /// Throw the failure; the file is not opened.
    case fail
    /// Open the file for reading only, at the last version that could be run.
    case readOnly
    /// Put back the copy of the file made before the first version, and open it for reading only.
    case restoreCopy
    /// Leave the file to the client, which refetches the data and keeps the outbox.
    case refetch
}
