/// The outcome of opening a file by versions.
public enum MigrationOutcome: Hashable, Sendable {
    /// The file was already at the newest version.
    case upToDate
    /// All versions were run. `from` is 0 for a new file.
    case migrated(from: Int, to: Int)
    /// A version failed. The file is at the version before it, and open for reading only.
    case readOnly(at: Int, failure: StoreError)
    /// A version failed. The file is as it was before the first version, and open for reading only.
    case restored(to: Int, failure: StoreError)
    /// A version failed. The client refetches the data.
    case refetching(failure: StoreError)

    /// The failure of a version; nil if there was none.
    public var failure: StoreError? {
        switch self {
        case .upToDate, .migrated: nil
        case .readOnly(_, let failure), .restored(_, let failure), .refetching(let failure):
            failure
        }
    }
}
