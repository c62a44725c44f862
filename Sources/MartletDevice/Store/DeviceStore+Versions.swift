internal import MartletModel
package import MartletStore
internal import SQLiteKit

extension DeviceStore {
    /// Opens or creates a device's file by versions. If a version fails and the fallback is to
    /// fetch everything again, the file is emptied and gets the newest version's tables.
    /// - Parameter client: The name of the device, if the file has none; nil for a new one.
    /// - Returns: The store, and how its opening ended. With `refetching` it can be written.
    /// - Throws: `StoreError`.
    package static func open(
        path: String, migrator: Migrator, fallback: MigrationFallback, vfs: String? = nil,
        hooks: WriteHooks, generation: SchemaGeneration, now: Int64, client: String? = nil,
        randomBits: @escaping () -> UInt64
    ) throws -> (DeviceStore, MigrationOutcome) {
        func opened(_ fallback: MigrationFallback) throws -> (DeviceStore, MigrationOutcome) {
            let store = try DeviceStore(
                path: path, migrator: migrator, fallback: fallback, vfs: vfs, hooks: hooks,
                generation: generation, now: now, client: client, randomBits: randomBits)
            return (store, store.migration ?? .upToDate)
        }
        let failure: StoreError
        do {
            // This has a scope of its own, because nothing else may have the file open when it is
            // emptied.
            let (store, outcome) = try opened(fallback)
            guard case .refetching(let why) = outcome else { return (store, outcome) }
            failure = why
        }
        do {
            try beginRefetching(path: path, vfs: vfs, now: now, randomBits: randomBits) {
                connection in
                try migrator.makeTables(on: connection)
            }
        } catch {
            throw StoreError.of(error)
        }
        return (try opened(.fail).0, .refetching(failure: failure))
    }
}
