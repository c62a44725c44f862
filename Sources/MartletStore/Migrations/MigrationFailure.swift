internal import SQLiteKit
internal import SQLiteRecords

/// Why a version could not be run, in a sentence that says where the file stands.
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
        return failure.placed(
            "Version \(migration.version) (\(migration.name)) was not run, and the file is as the"
                + " version before left it.")
    }
}

extension StoreError.Kind {
    /// A migration's own code threw an error of its own.
    public static let migration = StoreError.Kind(name: "migration")
}

extension StoreError {
    /// The same refusal with a sentence in front.
    fileprivate func placed(_ sentence: String) -> StoreError {
        var placed = StoreError(kind, "\(sentence) \(message)")
        placed.code = code
        placed.sql = sql
        placed.table = table
        placed.key = key
        placed.values = values
        return placed
    }
}
