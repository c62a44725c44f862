import Foundation
import MartletStore

/// Where this device keeps what is not shared: settings, and the token for the server.
struct LocalState: Sendable {
    let settings: Settings
    let secrets: any SecretStore
    /// The database.
    let database: String

    static let token = "token"

    /// Opens the state in a folder, which is made if it is missing.
    init(folder: String) async throws {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        database = folder + "/organisation.sqlite"
        settings = try await Settings.open(path: folder + "/settings.sqlite")
        secrets = FileSecretStore(folder: folder + "/secrets")
    }
}

extension SettingKey<String?> {
    /// The team this device looked at last.
    static var lastTeam: Self { SettingKey("lastTeam", default: nil) }
}
