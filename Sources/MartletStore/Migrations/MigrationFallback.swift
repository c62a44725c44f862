/// What to do when a version cannot be run.
///
/// Whatever is chosen, the file is first as the version before left it. It counts for files that
/// have been in use: where a new file cannot be made, the failure is thrown. It is thrown, too,
/// where waiting or making room is what helps: the file is locked by another program, and, under
/// `fetchAnew`, where the disk is full or fails.
public enum MigrationFallback: Hashable, Sendable {
    /// Throw the failure; the file is not opened.
    case fail
    /// Open the file as it is, at the last version that could be run, for reading only.
    case readOnly
    /// Put back the copy of the file made before the first version, and open that for reading only.
    case restoreCopy
    /// Leave the file to the client, which fetches the data anew under the kept outbox.
    case fetchAnew
}
