public import Foundation

extension StoreError: LocalizedError {
    /// The message. It contains no values of records.
    public var errorDescription: String? { message }
}
