/// All versions of a database's schema, oldest first.
///
/// Whenever a file is opened, every version that it has not seen runs, in order.
///
/// ```swift
/// let migrations = try Migrations([
///     Migration(1, "players") {
///         try $0.create("CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
///     },
///     Migration(2, "nicknames") { try $0.addColumn("nickname TEXT", to: "players") },
/// ])
/// ```
public struct Migrations: Sendable {
    package let list: [Migration]

    /// Creates the list.
    /// - Throws: `StoreError` `.schema` if the numbers do not ascend, or one is below 1.
    public init(_ list: [Migration]) throws {
        var last = 0
        for migration in list {
            if migration.version < 1 {
                throw StoreError(
                    .schema,
                    "Version \(migration.version) (\(migration.name)) has a number below 1; number"
                        + " the versions from 1 up.")
            }
            if migration.version == last {
                throw StoreError(
                    .schema,
                    "Version \(migration.version) stands twice in the list; give the later one"
                        + " (\(migration.name)) a number of its own.")
            }
            if migration.version < last {
                throw StoreError(
                    .schema,
                    "Version \(migration.version) (\(migration.name)) stands behind version"
                        + " \(last); list the versions in ascending order.")
            }
            last = migration.version
        }
        self.list = list
    }

    /// The newest version; 0 if there is none.
    public var newest: Int { list.last?.version ?? 0 }
}
