import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletStore

extension CommandDescription {
    static let status = CommandDescription(
        name: "status",
        summary: "show how a device file stands",
        discussion: "Needs no server. Exits with 3 while refused change sets are parked.",
        arguments: [Argument(name: "FILE", help: "the device file")],
        options: [
            Option(name: "receipts", value: "N", help: "show the fates of the newest N change sets")
        ],
        examples: [
            Example("status team.sqlite", "revision, queue, parked change sets, last exchange"),
            Example("status team.sqlite --receipts 20 --json", "for a program"),
        ]
    ) { arguments, console in
        let count = try arguments.integer("receipts", in: 0...1_000_000, default: 0)
        let device = try await DeviceFile.open(arguments)
        return try await StatusReport.print(device, arguments, console, receipts: count)
    }

    static let sync = CommandDescription(
        name: "sync",
        summary: "exchange with the server once",
        discussion: """
            Sends what is queued and fetches what is missing. Exits with 3 when refused change sets
            are parked, and with 4 when the server cannot be reached.
            """,
        arguments: [Argument(name: "FILE", help: "the device file")],
        options: DeviceFile.serverOptions,
        examples: [
            Example("sync team.sqlite", "with the server that init was given"),
            Example("sync team.sqlite --server https://sync.example.org", "with another address"),
        ]
    ) { arguments, console in
        let device = try await DeviceFile.open(arguments, needsServer: true)
        try await device.client.sync()
        return try await StatusReport.print(device, arguments, console)
    }
}

/// The status of a device, in words or as JSON.
enum StatusReport {
    /// The counts of values that did not go into the tables.
    private typealias Kept = (
        keptAside: [KeptAside], quarantined: [QuarantinedRecord], withheld: [WithheldRecord]
    )

    static func print(
        _ device: DeviceFile, _ arguments: ParsedArguments, _ console: Console,
        receipts count: Int = 0
    ) async throws -> ExitCode {
        let status = try await device.client.status()
        let parked = try await device.client.parked()
        let withheld = try await device.client.withheld()
        let keptAside = try await device.client.keptAside()
        let quarantined = try await device.client.quarantined()
        let receipts = count == 0 ? [] : try await device.client.receipts(limit: count)
        await device.client.close()
        let kept = (keptAside, quarantined, withheld)
        if arguments.isJSON {
            console.print(json(status, parked, kept, receipts).description)
        } else {
            for line in lines(status, parked, kept, receipts, device.server) {
                console.print(line)
            }
        }
        return parked.isEmpty ? .done : .conflictsParked
    }

    private static func lines(
        _ status: ClientStatus, _ parked: [ParkedSet], _ kept: Kept, _ receipts: [Receipt],
        _ server: URL?
    ) -> [String] {
        let (keptAside, quarantined, withheld) = kept
        var lines = [
            "device         \(status.clientID)",
            "data set       \(status.dataSet ?? "none yet")",
            "server         \(server?.absoluteString ?? "none")",
            "revision       \(status.revision)",
            "queued         \(status.outbox) change sets",
            "parked         \(status.parked) change sets",
            "kept aside     \(status.keptAside) records",
            "quarantined    \(status.quarantined) records",
            "withheld       \(status.withheld) records",
            "passed over    \(status.passedOver) changes that had arrived before",
            "last exchange  \(status.lastExchange.map(time) ?? "never")",
        ]
        if status.awaitingTable > 0 {
            lines.append(
                "  not queued: \(status.awaitingTable) records that another program wrote in tables which are"
                    + " gone or renamed; they are queued once the file has the tables again, under their names"
            )
        }
        if let reason = status.unremovedReason {
            lines.append(
                "  not removed: the file still has traces of records that the user may not see any more, and"
                    + " the server waits for their removal: \(reason)")
        }
        if let reason = status.unappliedReason {
            lines.append("  not applied: the tables refuse other devices' changes. \(reason)")
        }
        for kept in keptAside {
            let what =
                kept.attributes.isEmpty ? "no table" : kept.attributes.joined(separator: ", ")
            lines.append("  kept aside \(kept.type): \(kept.records) records, \(what)")
        }
        for record in quarantined.prefix(8) {
            lines.append("  quarantined \(record.type) \(short(record.id)): \(record.message)")
        }
        if quarantined.count > 8 {
            lines.append("  quarantined: \(quarantined.count - 8) more, which --json lists")
        }
        for set in parked {
            let records = set.changes.map { "\($0.operation.rawValue) \($0.type) \(short($0.id))" }
            lines.append("  parked \(set.identifier): \(set.reason.rawValue), \(set.message)")
            let rest = records.count > 8 ? " and \(records.count - 8) more, which --json lists" : ""
            lines.append("    " + records.prefix(8).joined(separator: ", ") + rest)
        }
        for record in withheld {
            let shown = record.isShown ? "" : " (not shown: others deleted or changed the record)"
            lines.append("  withheld \(record.type) \(short(record.id))\(shown): \(record.message)")
        }
        for receipt in receipts {
            let revision = receipt.revision.map { " at revision \($0)" } ?? ""
            let reason = receipt.reason.map { ", \($0.rawValue)" } ?? ""
            lines.append("  \(receipt.identifier): \(receipt.outcome.rawValue)\(revision)\(reason)")
        }
        return lines
    }

    /// Returns a shortened key for a line, because a text key may take 16 MiB.
    private static func short(_ id: RecordID) -> String {
        let text = id.description
        return text.utf8.count <= 128 ? text : text.prefix(64) + "…"
    }

    private static func json(
        _ status: ClientStatus, _ parked: [ParkedSet], _ kept: Kept, _ receipts: [Receipt]
    ) -> JSONText {
        let (keptAside, quarantined, withheld) = kept
        return .object([
            ("clientId", .text(status.clientID)), ("dataSet", .optional(status.dataSet)),
            ("revision", .integer(status.revision)), ("outbox", .integer(Int64(status.outbox))),
            ("parked", .integer(Int64(status.parked))),
            ("keptAside", .integer(Int64(status.keptAside))),
            ("quarantined", .integer(Int64(status.quarantined))),
            ("passedOver", .integer(status.passedOver)),
            (
                "keptAsideTypes",
                .list(
                    keptAside.map { kept in
                        .object([
                            ("type", .text(kept.type)),
                            ("records", .integer(Int64(kept.records))),
                            ("attributes", .list(kept.attributes.map { .text($0) })),
                        ])
                    })
            ),
            ("quarantinedRecords", .list(quarantined.map { json($0.type, $0.id, $0.message) })),
            ("lastExchange", .optional(status.lastExchange.map(time))),
            (
                "parkedSets",
                .list(
                    parked.map { set in
                        .object([
                            ("identifier", .text(set.identifier)),
                            ("reason", .text(set.reason.rawValue)), ("message", .text(set.message)),
                            ("timestamp", .text(set.timestamp)),
                            ("truthCut", .boolean(set.isTruthCut)),
                            (
                                "changes",
                                .list(
                                    set.changes.map { change in
                                        .object([
                                            ("type", .text(change.type)),
                                            ("id", .text(change.id.description)),
                                            ("operation", .text(change.operation.rawValue)),
                                        ])
                                    })
                            ),
                        ])
                    })
            ),
            ("unremovedReason", .optional(status.unremovedReason)),
            ("unappliedReason", .optional(status.unappliedReason)),
            ("awaitingTable", .integer(Int64(status.awaitingTable))),
            ("withheld", .list(withheld.map { json($0.type, $0.id, $0.message) })),
            (
                "receipts",
                .list(
                    receipts.map { receipt in
                        .object([
                            ("identifier", .text(receipt.identifier)),
                            ("outcome", .text(receipt.outcome.rawValue)),
                            ("revision", .optional(receipt.revision)),
                            ("reason", .optional(receipt.reason?.rawValue)),
                        ])
                    })
            ),
        ])
    }

    private static func json(_ type: String, _ id: RecordID, _ message: String) -> JSONText {
        .object([
            ("type", .text(type)), ("id", .text(id.description)), ("message", .text(message)),
        ])
    }

    /// Returns milliseconds since 1970 as ISO 8601.
    static func time(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
            .formatted(.iso8601)
    }
}
