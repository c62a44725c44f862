import MartletModel
import MartletServerCore
import SQLiteKit

/// Keeps the devices of a data set. It looks them up one by one, because every holder of a token
/// can name new ones.
extension EmbeddedSession {
    /// The most devices that are kept in memory.
    private static let mostDevices = 4_096

    /// Returns a device that has sent a change set; nil if it is not known.
    func device(named clientID: String) throws(SQLiteError) -> KnownDevice? {
        if let known = devices[clientID] { return known }
        let statement = try connection.statement(
            "SELECT number, principal, acknowledged FROM martlet_devices WHERE client_id = ?1")
        defer { statement.reset() }
        statement.bind(1, text: clientID)
        guard try statement.step() else { return nil }
        let device = KnownDevice(
            number: statement.integer(0), principal: statement.text(1),
            acknowledged: statement.integer(2))
        remember(device, clientID: clientID)
        return device
    }

    /// Registers a device.
    ///
    /// - Returns: Nil if the principal has the most devices that it may have.
    func register(
        clientID: String, principal: Principal, most: Int, now: Int64
    ) throws(SQLiteError) -> KnownDevice? {
        if let known = try device(named: clientID) { return known }
        let count = try deviceCount(of: principal.identity)
        guard count < most else { return nil }
        let statement = try connection.statement(
            """
            INSERT INTO martlet_devices (client_id, principal, acknowledged, since) \
            VALUES (?1, ?2, 0, ?3)
            """)
        defer { statement.reset() }
        statement.bind(1, text: clientID)
        statement.bind(2, text: principal.identity)
        statement.bind(3, integer: now)
        while try statement.step() {}
        let device = KnownDevice(
            number: connection.lastInsertedRowID, principal: principal.identity,
            acknowledged: 0)
        deviceCounts[principal.identity] = count + 1
        remember(device, clientID: clientID)
        highestSequences[device.number] = 0
        return device
    }

    private func deviceCount(of principal: String) throws(SQLiteError) -> Int {
        if let count = deviceCounts[principal] { return count }
        let statement = try connection.statement(
            "SELECT count(*) FROM martlet_devices WHERE principal = ?1")
        defer { statement.reset() }
        statement.bind(1, text: principal)
        let count = try statement.step() ? Int(statement.integer(0)) : 0
        deviceCounts[principal] = count
        return count
    }

    private func remember(_ device: KnownDevice, clientID: String) {
        if devices.count >= Self.mostDevices { devices.removeAll() }
        devices[clientID] = device
    }

    /// Returns the principal to which a device belongs.
    func principal(of device: Int64) throws(SQLiteError) -> String? {
        let statement = try connection.statement(
            "SELECT principal FROM martlet_devices WHERE number = ?1")
        defer { statement.reset() }
        statement.bind(1, integer: device)
        return try statement.step() ? statement.text(0) : nil
    }

    func acknowledge(_ sequence: Int64, clientID: String) throws(SQLiteError) {
        guard var known = try device(named: clientID), known.acknowledged < sequence else { return }
        let statement = try connection.statement(
            "UPDATE martlet_devices SET acknowledged = ?2 WHERE number = ?1")
        defer { statement.reset() }
        statement.bind(1, integer: known.number)
        statement.bind(2, integer: sequence)
        while try statement.step() {}
        if floor > 0 { try empty(known, acknowledging: sequence) }
        known.acknowledged = sequence
        devices[clientID] = known
    }

    /// Returns whether the device may have used this number; false is certain.
    func mayHaveUsed(_ sequence: Int64, device: Int64) throws(SQLiteError) -> Bool {
        if let highest = highestSequences[device] { return sequence <= highest }
        let statement = try connection.statement(
            """
            SELECT max(ifnull((SELECT max(sequence) FROM martlet_log \
            WHERE device = ?1 AND device <> 0 AND sequence IS NOT NULL), 0), \
            ifnull((SELECT max(sequence) FROM martlet_refusals \
            WHERE device = ?1 AND sequence IS NOT NULL), 0))
            """)
        defer { statement.reset() }
        statement.bind(1, integer: device)
        let highest = try statement.step() ? statement.integer(0) : 0
        highestSequences[device] = highest
        return sequence <= highest
    }

    /// Notes a number as used. If its set is rolled back later, the number stays noted, which only
    /// costs a look-up.
    func note(sequence: Int64?, device: Int64) {
        guard let sequence, let highest = highestSequences[device], sequence > highest else {
            return
        }
        highestSequences[device] = sequence
    }
}
