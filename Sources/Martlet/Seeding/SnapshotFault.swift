internal import MartletDevice
internal import MartletModel
internal import MartletStore
internal import SQLiteRecords
internal import SystemKit

/// A snapshot that differs from its announcement. The downloaded files are deleted.
struct SnapshotFault: Error, Hashable, Sendable {
    /// The difference, as the end of a sentence.
    let what: String

    init(_ what: String) {
        self.what = what
    }
}

extension SyncError {
    /// Returns the error for the caller if seeding failed.
    static func seeding(_ error: any Error) -> any Error {
        switch error {
        case let fault as SnapshotFault:
            SyncError(
                .violation,
                "The snapshot was not accepted: \(fault.what). Nothing of it was used; open again to"
                    + " fetch it again.")
        case let error as SnapshotError:
            SyncError(error)
        case let error as SystemError:
            SyncError(.storage, StoreError(error).message)
        case let failure as TransportFailure:
            SyncError(failure)
        default:
            StoreError.of(error)
        }
    }
}
