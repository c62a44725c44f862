package import MartletModel

/// A device, and its confirmation that nothing is left in it of records which its user may not see.
package struct DevicePurge: Hashable, Sendable {
    /// How far the device has come.
    package enum State: String, Sendable {
        /// The device was given no view: its user sees everything, or there are no policies.
        case seesAll = "sees all"
        /// The device has nothing that is hidden from its user.
        case confirmed
        /// The device has not been here since records left the view that it was given last, or since the
        /// data set was restored, or has not confirmed that it moved to this view.
        case waits
    }

    /// The last confirmation of a device.
    package struct Confirmation: Hashable, Sendable {
        package let revision: Revision
        /// The number of records removed so far, and the sum of the hashes of their names.
        package let records: Int64
        package let hash: String
        /// The time, in milliseconds since 1970.
        package let time: Int64
    }

    /// The device's name, and its user as the storage names him.
    package let clientID: String
    package let principal: String
    package let state: State
    /// Whether the data set was restored, and the device has not been given a view since.
    package let isRestored: Bool
    /// The number of records that left the device's view since the confirmation.
    package let hidden: Int64
    /// The revision up to which this is known: the last at which a device of the user with this view asked.
    /// It is 0 if the device was given no view.
    package let known: Revision
    /// Nil if the device has confirmed nothing.
    package let confirmed: Confirmation?
}

/// Lists the devices of a data set with what they confirm.
package struct DevicePurges {
    /// The prefix of Martlet's tables in the database.
    private let prefix: String

    private static let prefixOfDevices = "device:"

    /// Returns the name under which a storage keeps the view that one device was given last. No principal
    /// has it.
    package static func identity(ofDevice number: Int64) -> String { "\(prefixOfDevices)\(number)" }

    /// The view, which nobody has, of a confirmation that a device made before it was given another view.
    package static let outdated: Int64 = -1

    /// SQL that is true for a name of a principal, and not for one of a device.
    package static func isPrincipal(_ column: String) -> String {
        "\(column) NOT LIKE '\(prefixOfDevices)%'"
    }

    /// - Parameter prefix: `martlet_`, or the schema with a dot.
    package init(prefix: String) {
        self.prefix = prefix
    }

    /// Returns the devices, by user and name.
    ///
    /// - Parameter rows: Runs a query, and returns its rows as texts.
    package func list<Failure>(
        _ rows: (String) throws(Failure) -> [[String?]]
    ) throws(Failure) -> [DevicePurge] {
        var purges: [DevicePurge] = []
        for row in try rows(devices) {
            guard let shown = row[6], shown != "\(View.everything)" else {
                purges.append(purge(row, .seesAll))
                continue
            }
            guard row[10] != "1" else {
                purges.append(purge(row, .waits, isRestored: true))
                continue
            }
            // A view that was removed has changed since the device was here.
            guard row[2] == shown, let revision = row[3].flatMap({ Int64($0) }), let parts = row[7]
            else {
                purges.append(purge(row, .waits))
                continue
            }
            let views = ViewScan.typeViews(parts)
            let count = try rows(hidden(in: views, after: revision)).first?.first ?? nil
            let hidden = count.flatMap { Int64($0) } ?? 0
            purges.append(purge(row, hidden == 0 ? .confirmed : .waits, hidden: hidden))
        }
        return purges
    }

    private func purge(
        _ row: [String?], _ state: DevicePurge.State, isRestored: Bool = false, hidden: Int64 = 0
    ) -> DevicePurge {
        func integer(_ column: Int) -> Int64 { row[column].flatMap { Int64($0) } ?? 0 }
        let confirmed = row[3].map { _ in
            DevicePurge.Confirmation(
                revision: integer(3), records: integer(4), hash: row[8] ?? "", time: integer(5))
        }
        return DevicePurge(
            clientID: row[0] ?? "", principal: row[1] ?? "", state: state, isRestored: isRestored,
            hidden: hidden, known: integer(9), confirmed: confirmed)
    }

    /// The devices, each with its confirmation and the view that it was given last. Before a server noted
    /// views by device, it noted only those of the user.
    private var devices: String {
        """
        SELECT d.client_id, d.principal, CAST(p.view AS text), CAST(p.revision AS text), \
        CAST(p.records AS text), CAST(p.time AS text), CAST(d.shown AS text), v.parts, p.hash, \
        CAST(n.last AS text), CASE WHEN v.\(ViewScan.isRetired) THEN '1' END FROM (SELECT number, client_id, principal, \
        coalesce(\(shown(to: "'\(Self.prefixOfDevices)' || e.number")), \(shown(to: "e.principal"))) \
        AS shown FROM \(prefix)devices AS e) AS d \
        LEFT JOIN \(prefix)purges AS p ON p.device = d.number \
        LEFT JOIN \(prefix)views AS v ON v.number = d.shown \
        LEFT JOIN \(prefix)given AS n ON n.principal = d.principal AND n.view = d.shown ORDER BY d.principal, d.client_id
        """
    }

    /// Returns the view that somebody was given last.
    private func shown(to name: String) -> String {
        """
        (SELECT g.view FROM \(prefix)given AS g WHERE g.principal = \(name) AND g.view >= 0 \
        ORDER BY g.last DESC, g.view DESC LIMIT 1)
        """
    }

    private func hidden(in views: [Int64], after revision: Revision) -> String {
        let list = (views + [0]).map { "\($0)" }.joined(separator: ", ")
        return """
            SELECT CAST(count(*) AS text) FROM \(prefix)members AS m \
            JOIN \(prefix)type_views AS t ON t.number = m.view \
            JOIN \(prefix)records AS r ON r.type = t.type AND r.id = m.id \
            WHERE m.view IN (\(list)) AND NOT m.shown AND m.moved > \(revision) \
            AND (NOT r.deleted OR r.revision > m.moved)
            """
    }
}
