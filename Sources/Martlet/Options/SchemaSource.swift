internal import MartletDevice
internal import MartletStore

/// The source of a client's tables.
enum SchemaSource: Sendable {
    /// The app's DDL; nil takes the tables as the file has them.
    case script(String?)
    case versions(
        Migrations, MigrationFallback, progress: @Sendable (MigrationProgress) -> Void)

    /// Opens a device's file.
    /// - Parameter client: The name of the device, if the file has none; nil for a new one.
    /// Returns the store, and the outcome of its migration; the outcome is nil for a script.
    func open(
        path: String, options: ClientOptions, generation: SchemaGeneration, client: String?
    ) throws -> (DeviceStore, MigrationOutcome?) {
        let randomBits = options.randomBits
        switch self {
        case .script(let script):
            let store = try DeviceStore(
                path: path, script: script, hooks: options.hooks, generation: generation,
                now: options.now(), client: client, randomBits: { randomBits() })
            return (store, nil)
        case .versions(let migrations, let fallback, let progress):
            let now = options.now()
            return try DeviceStore.open(
                path: path, migrator: Migrator(migrations, now: now, progress: progress),
                fallback: fallback, hooks: options.hooks, generation: generation, now: now,
                client: client, randomBits: { randomBits() })
        }
    }
}
