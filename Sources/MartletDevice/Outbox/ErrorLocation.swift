internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// The record whose remote change is being applied, so that a failure can name it.
final class ErrorLocation {
    private var type = ""
    private var id = RecordID.integer(0)
    private var revision: Revision = 0

    func note(_ type: String, _ id: RecordID, _ revision: Revision) {
        self.type = type
        self.id = id
        self.revision = revision
    }

    /// Returns the error; if the change itself is at fault, its message begins with the change.
    func named(_ error: any Error) -> any Error {
        guard Self.isData(error), !type.isEmpty else { return error }
        return StoreError(
            .inconsistent,
            "The change to \(type) \(id) at revision \(revision) cannot be applied:"
                + " \(Self.sentence(error))")
    }

    /// Returns whether the received data is at fault, and not the disk. It would fail again.
    static func isData(_ error: any Error) -> Bool {
        switch error {
        case let error as SQLiteError: error.isConstraint || error.isMismatch || error.isTooBig
        case let error as StoreError: error.kind == .inconsistent || error.kind == .value
        case is WireFault, is HandlerFailure: true
        default: false
        }
    }

    /// Returns the fault as a sentence.
    static func sentence(_ error: any Error) -> String {
        switch error {
        case let error as SQLiteError: "\(error.message)."
        case let error as StoreError: error.message
        case let error as WireFault: error.message
        case let error as HandlerFailure: error.message
        default: "\(error)"
        }
    }
}

/// An error of an app's handler that could not apply a change.
struct HandlerFailure: Error {
    let message: String
}
