internal import SQLiteFaults
internal import SQLiteKit

/// The app's next version arrives, first on the server, then on one device after another.
extension Simulator {
    func updateServer() throws {
        guard let next, !server.isUpdated else { return }
        server.update(script: next.serverScript)
        rights?.forgetPrograms()
        report.happened(.update)
        note("update", 0, at: .server)
        dropConnections()
        try startServer()
        for device in devices {
            queue.put(.update(device: device.number), at: now + Int64(random.below(300_000)))
        }
    }

    func update(_ device: DeviceMachine) throws {
        guard let next, !device.isUpdated else { return }
        device.update(to: next)
        report.happened(.update)
        note("update", device.number)
        listeners.removeAll { $0.device == device.number }
        try start(device)
    }

    /// Gives the next version to the machines that do not have it.
    func updateAll() throws {
        try updateServer()
        for device in devices { try update(device) }
    }
}
