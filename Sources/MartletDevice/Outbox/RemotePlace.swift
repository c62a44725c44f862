internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Where the applying of remote change is, so that a failure can name the delta it failed at.
final class RemotePlace {
    private var type = ""
    private var id = RecordID.integer(0)
    private var revision: Revision = 0

    func note(_ type: String, _ id: RecordID, _ revision: Revision) {
        self.type = type
        self.id = id
        self.revision = revision
    }

    /// A failure with the change it came from in front, where the change itself is at fault.
    func named(_ error: any Error) -> any Error {
        guard Self.isData(error), !type.isEmpty else { return error }
        return StoreError(
            .inconsistent,
            "The change to \(type) \(id) at revision \(revision) cannot be applied:"
                + " \(Self.sentence(error))")
    }

    /// Whether what came is at fault, and not the disk: it would fail again.
    static func isData(_ error: any Error) -> Bool {
        switch error {
        case let error as SQLiteError: error.isConstraint || error.isMismatch || error.isTooBig
        case let error as StoreError: error.kind == .inconsistent || error.kind == .value
        case is WireFault, is HandlerFailure: true
        default: false
        }
    }

    /// What is wrong, for people.
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

/// An app's handler could not take a change in.
struct HandlerFailure: Error {
    let message: String
}
