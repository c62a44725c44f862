public import MartletStore

/// The tables of an app under test, as the app itself makes them.
public struct SimulatedSchema: Sendable {
    enum Content {
        case script(String)
        case versions(Migrations)
    }

    let content: Content

    /// Returns tables that a script creates, as `MartletClient.open(path:schema:)` takes it. The
    /// server has the same tables.
    public static func sql(_ script: String) -> SimulatedSchema {
        SimulatedSchema(content: .script(script))
    }

    /// Returns tables that versions create, as `MartletClient.open(path:migrations:)` takes them.
    /// The server has the tables of the newest version.
    public static func versions(_ migrations: Migrations) -> SimulatedSchema {
        SimulatedSchema(content: .versions(migrations))
    }
}
