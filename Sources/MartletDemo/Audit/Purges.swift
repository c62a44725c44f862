import Foundation
import Martlet

/// Waits until the devices of coaches have confirmed that nothing hidden is left on them.
struct Purges {
    let team: DemoTeam
    let backEnd: any DemoBackEnd
    let options: DemoOptions

    private struct Answer: Decodable {
        struct Device: Decodable {
            let device: String
            let state: String
        }

        let devices: [Device]
    }

    /// Lets the devices exchange until `martlet purges` says that none of them waits.
    /// - Returns: The number of devices that have confirmed, in the end.
    func wait() async throws -> Int {
        var confirmed = 0
        for _ in 0..<10 {
            for device in team.coached { _ = try await device.sync(tries: options.tries) }
            confirmed = try await count()
            if confirmed == team.coached.count { break }
        }
        return confirmed
    }

    private func count() async throws -> Int {
        guard !team.coached.isEmpty else { return 0 }
        // It ends with 1 if a device waits.
        let said = try await ServerProcess.run(
            options.program, ["purges", "--json"] + backEnd.dataOptions, accepting: [0, 1])
        let answer = try JSONDecoder().decode(Answer.self, from: Data(said.utf8))
        let confirmed = Set(answer.devices.filter { $0.state == "confirmed" }.map(\.device))
        var count = 0
        for device in team.coached
        where confirmed.contains(try await device.client.status().clientID) { count += 1 }
        return count
    }
}
