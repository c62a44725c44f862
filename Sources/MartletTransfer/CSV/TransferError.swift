/// The error of an import or export, with a sentence that contains the remedy.
package struct TransferError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }
}
