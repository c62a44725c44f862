public import MartletStore

/// The tables of an app under test, as the app itself makes them.
public struct SimulatedSchema: Sendable {
    enum Content {
        case script(String)
        case versions(Migrations)
    }

    let content: Content

    /// Tables made by a script, as `MartletClient.open(path:schema:)` takes it; the server has the
    /// same.
    public static func sql(_ script: String) -> SimulatedSchema {
        SimulatedSchema(content: .script(script))
    }

    /// Tables made version by version, as `MartletClient.open(path:migrations:)` takes them; the
    /// server has the newest version's.
    public static func versions(_ migrations: Migrations) -> SimulatedSchema {
        SimulatedSchema(content: .versions(migrations))
    }
}
