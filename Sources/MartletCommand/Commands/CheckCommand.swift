import Martlet
import MartletDevice
import MartletModel

extension CommandDescription {
    static let check = CommandDescription(
        name: "check",
        summary: "compare a device file with the server and repair what differs",
        discussion: """
            Exchanges first. Hashes travel, and the rows that differ. Edits that were not captured,
            because triggers were gone or off, are reverted, or become change sets with --capture.
            """,
        arguments: [Argument(name: "FILE", help: "the device file")],
        options: DeviceFile.serverOptions + [
            Option(name: "capture", help: "send edits that were not captured, do not revert them")
        ],
        examples: [
            Example("check team.sqlite", "what differs is as the server has it afterwards"),
            Example("check team.sqlite --capture --json", "for a program"),
        ]
    ) { arguments, console in
        let device = try await DeviceFile.open(arguments, needsServer: true)
        let report = try await device.client.check(
            repairing: arguments.has("capture") ? .capture : .revert)
        await device.client.close()
        if arguments.isJSON {
            console.print(json(report).description)
        } else {
            for line in lines(report) { console.print(line) }
        }
        return .done
    }

    private static func lines(_ report: CheckReport) -> [String] {
        var lines = report.findings.map {
            "\($0.type) \($0.id): \($0.reason.rawValue), \($0.outcome.rawValue)"
        }
        lines += report.unreadable.map {
            "\($0.type) x'\($0.key.prefix(64))': \($0.message), so it cannot be sent;"
                + " delete the row, and insert it under another key"
        }
        if report.isCaptureRestored { lines.append("capture was off or damaged, and is restored") }
        if !report.unknownTypes.isEmpty {
            lines.append("unknown to the server: " + report.unknownTypes.joined(separator: ", "))
        }
        if !report.unfinishedTypes.isEmpty {
            lines.append(
                "not compared to the end: " + report.unfinishedTypes.joined(separator: ", "))
        }
        lines.append("compared \(report.recordCount) records, \(report.findings.count) differed")
        return lines
    }

    private static func json(_ report: CheckReport) -> JSONText {
        .object([
            ("records", .integer(Int64(report.recordCount))),
            ("captureRestored", .boolean(report.isCaptureRestored)),
            (
                "unreadable",
                .list(
                    report.unreadable.map { row in
                        .object([
                            ("type", .text(row.type)), ("key", .text(row.key)),
                            ("message", .text(row.message)),
                        ])
                    })
            ),
            ("unknownTypes", .list(report.unknownTypes.map { .text($0) })),
            ("unfinishedTypes", .list(report.unfinishedTypes.map { .text($0) })),
            (
                "findings",
                .list(
                    report.findings.map { finding in
                        .object([
                            ("type", .text(finding.type)), ("id", .text(finding.id.description)),
                            ("reason", .text(finding.reason.rawValue)),
                            ("outcome", .text(finding.outcome.rawValue)),
                        ])
                    })
            ),
        ])
    }
}
