internal import SQLiteKit
internal import Synchronization

/// Whether work is still wanted: set by whoever cancels it, seen by the connection that runs it.
package final class CancellationFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    package init() {}

    package func set() {
        flag.store(true, ordering: .releasing)
    }

    package var isSet: Bool { flag.load(ordering: .acquiring) }

    /// - Throws: `StoreError` `.cancelled` once the sign is set.
    package func check() throws {
        guard !isSet else { throw Self.cancelled }
    }

    static var cancelled: StoreError {
        StoreError(
            .cancelled,
            "The task was cancelled, so its work was stopped; run it again if it is wanted.")
    }
}

extension Session {
    /// Runs `body`; a statement that is under way when the sign is set ends with an error.
    package func stopping<Result>(
        by sign: CancellationFlag, _ body: () throws -> Result
    ) throws -> Result {
        connection.stopStatements { sign.isSet }
        defer { connection.stopStatements(when: nil) }
        return try body()
    }
}
