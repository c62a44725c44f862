public import Foundation

extension StoreError: LocalizedError {
    /// The message; it holds no values.
    public var errorDescription: String? { message }
}
