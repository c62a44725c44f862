public import Foundation
public import MartletDevice

extension SyncError: LocalizedError {
    /// The message; it holds no values.
    public var errorDescription: String? { message }
}
