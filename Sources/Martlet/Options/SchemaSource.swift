internal import MartletDevice
internal import MartletStore

/// What a client's tables are made by.
enum SchemaSource: Sendable {
    /// The app's DDL; nil takes the tables as they are in the file.
    case script(String?)
    case versions(
        Migrations, MigrationFallback, progress: @Sendable (MigrationProgress) -> Void)

    /// Opens a device's file.
    /// - Returns: The store, and how its opening ended; nil for a script.
    func open(
        path: String, options: ClientOptions, generation: SchemaGeneration
    ) throws -> (DeviceStore, MigrationOutcome?) {
        let randomBits = options.randomBits
        switch self {
        case .script(let script):
            let store = try DeviceStore(
                path: path, script: script, hooks: options.hooks, generation: generation,
                now: options.now(), randomBits: { randomBits() })
            return (store, nil)
        case .versions(let migrations, let fallback, let progress):
            let now = options.now()
            return try DeviceStore.open(
                path: path, migrator: Migrator(migrations, now: now, progress: progress),
                fallback: fallback, hooks: options.hooks, generation: generation, now: now,
                randomBits: { randomBits() })
        }
    }
}
