internal import SQLiteKit
internal import SQLiteRecords

/// Creates the error for a version that could not be run. Its message says at which version the
/// file is.
package enum MigrationFailure {
    package static func of(_ error: any Error, in migration: Migration) -> StoreError {
        let failure: StoreError
        switch error {
        case let error as StoreError: failure = error
        case let error as SQLiteError: failure = StoreError(error)
        case let error as SchemaError: failure = StoreError(.schema, error.message + ".")
        default:
            // The error may hold values; its type does not.
            failure = StoreError(
                .migration, "The version's own code threw \(type(of: error)).")
        }
        return failure.prefixed(
            "Version \(migration.version) (\(migration.name)) was not run, and the file is as the"
                + " version before left it.")
    }
}

extension StoreError.Kind {
    /// A migration's own code threw an error of another type.
    public static let migration = StoreError.Kind(name: "migration")
}

extension StoreError {
    /// Returns the same error with a sentence before its message.
    fileprivate func prefixed(_ sentence: String) -> StoreError {
        var copy = StoreError(kind, "\(sentence) \(message)")
        copy.code = code
        copy.sql = sql
        copy.table = table
        copy.key = key
        copy.values = values
        return copy
    }
}
