public import Foundation
public import MartletDevice

extension SyncError: LocalizedError {
    /// The message, which holds no values.
    public var errorDescription: String? { message }
}
