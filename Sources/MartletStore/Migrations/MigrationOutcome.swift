/// How the opening of a file by versions ended.
public enum MigrationOutcome: Hashable, Sendable {
    /// The file was at the newest version.
    case upToDate
    /// All versions were run. `from` is 0 for a new file.
    case migrated(from: Int, to: Int)
    /// A version failed; the file is open for reading only, at the version before it.
    case readOnly(at: Int, failure: StoreError)
    /// A version failed; the file is as it was before the first one, open for reading only.
    case restored(to: Int, failure: StoreError)
    /// A version failed; the client fetches the data anew.
    case fetchingAnew(failure: StoreError)

    /// Why the file can only be read; nil where it can be written.
    public var failure: StoreError? {
        switch self {
        case .upToDate, .migrated: nil
        case .readOnly(_, let failure), .restored(_, let failure), .fetchingAnew(let failure):
            failure
        }
    }
}
