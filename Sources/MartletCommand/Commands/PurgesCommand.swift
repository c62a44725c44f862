import Foundation
import MartletPostgres
import MartletServer
import MartletServerCore
import PostgresKit

extension CommandDescription {
    static let purges = CommandDescription(
        name: "purges",
        summary: "list which devices have removed what their users may not see any more",
        discussion: """
            Each device that a person with a part of the data set uses confirms that nothing else is left
            in its file. A device that waits has not been here since records left its user's view: it may
            still have them. After a restore, each device waits until it has confirmed again. The server finds out what has left a view when a device of the user asks; each
            line says up to which revision that is known. Changes nothing, and servers may run. Ends with 1
            if a device waits.
            """,
        options: [
            Option(name: "data", value: "DIR", help: "the server's data folder"), postgresOption,
        ],
        examples: [
            Example("purges --data data", "the devices of a data folder's data sets"),
            Example("purges --data data --json", "for a program"),
        ]
    ) { arguments, console in
        let lists = try lists(arguments)
        let waits = lists.contains { $0.devices.contains { $0.state == .waits } }
        if arguments.isJSON {
            let devices = lists.flatMap { list in list.devices.map { json($0, of: list.dataSet) } }
            console.print(
                JSONText.object([("ok", .boolean(!waits)), ("devices", .list(devices))])
                    .description)
        } else {
            for list in lists {
                console.print("data set \(list.dataSet)")
                for device in list.devices { console.print("  \(line(device))") }
                if list.devices.isEmpty { console.print("  no devices") }
            }
        }
        return waits ? .failed : .done
    }

    private static func lists(
        _ arguments: ParsedArguments
    ) throws -> [(dataSet: String, devices: [DevicePurge])] {
        let environment = ProcessInfo.processInfo.environment["MARTLET_POSTGRES"]
        if let data = arguments.value("data") { return try PurgeReport.files(in: data) }
        guard let url = arguments.value("postgres") ?? environment, !url.isEmpty else {
            throw UsageError("purges needs --data DIR or --postgres URL.", command: "purges")
        }
        let connection = try PostgresConnection(
            PostgresAddress(url), PostgresOptions(readOnly: true, name: "martlet purges"))
        defer { connection.close() }
        return [try PostgresPurges.list(on: connection)]
    }

    private static func line(_ device: DevicePurge) -> String {
        var parts = ["\(device.principal), device \(device.clientID): \(device.state.rawValue)"]
        if let confirmed = device.confirmed {
            parts.append(
                "\(confirmed.records) records removed (\(confirmed.hash)) up to revision"
                    + " \(confirmed.revision), confirmed \(time(confirmed.time))")
        } else if device.state == .waits {
            parts.append("has confirmed nothing")
        }
        if device.isRestored {
            parts.append("the data set was restored since")
        } else if device.state == .waits, device.hidden == 0, device.confirmed != nil {
            parts.append("it has been given another view since")
        }
        if device.hidden > 0 { parts.append("\(device.hidden) records have left the view since") }
        if device.state != .seesAll { parts.append("as of revision \(device.known)") }
        return parts.joined(separator: "; ")
    }

    private static func json(_ device: DevicePurge, of dataSet: String) -> JSONText {
        var members: [(String, JSONText)] = [
            ("dataSet", .text(dataSet)), ("user", .text(device.principal)),
            ("device", .text(device.clientID)), ("state", .text(device.state.rawValue)),
            ("hiddenSince", .integer(device.hidden)), ("knownUpTo", .integer(device.known)),
            ("restoredSince", .boolean(device.isRestored)),
        ]
        if let confirmed = device.confirmed {
            members += [
                ("revision", .integer(confirmed.revision)),
                ("removed", .integer(confirmed.records)),
                ("hash", .text(confirmed.hash)), ("confirmed", .text(time(confirmed.time))),
            ]
        }
        return .object(members)
    }

    private static func time(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
    }
}
