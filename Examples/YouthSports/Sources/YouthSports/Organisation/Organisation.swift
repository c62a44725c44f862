import Foundation
import Martlet

/// The organisation's data on this device: one file, kept in step with the other devices' through a
/// server where there is one, and a data center for each area.
public struct Organisation: Sendable {
    /// What keeps the file in step.
    public let client: MartletClient
    public let teams: TeamsCenter
    public let roster: RosterCenter
    public let screenings: ScreeningsCenter
    /// Settles refused notes without a person.
    public let refusedNotes: RefusedNotes

    /// Opens or creates the file, and leads it to the newest version.
    ///
    /// A file whose version cannot be run is shown as it is, and can only be read
    /// (`client.migration` says why).
    /// - Parameters:
    ///   - server: nil to work without one; what is written waits until there is one.
    ///   - token: The bearer token for the server.
    public static func open(
        path: String, server: URL? = nil, token: String? = nil
    ) async throws -> Organisation {
        var options = ClientOptions()
        options.hooks = .consent()
        // Others' changes come at once while the program stays, or this often without a stream.
        options.pull = .live(pollingEvery: .seconds(5))
        return Organisation(
            client: try await MartletClient.open(
                path: path, migrations: try OrganisationSchema.versions(), fallback: .readOnly,
                server: server, token: token, options: options))
    }

    init(client: MartletClient) {
        self.client = client
        teams = TeamsCenter(database: client)
        roster = RosterCenter(database: client)
        screenings = ScreeningsCenter(database: client)
        refusedNotes = RefusedNotes(database: client)
    }

    /// Stops exchanging and lets go of the file.
    public func close() async {
        await client.close()
    }
}
