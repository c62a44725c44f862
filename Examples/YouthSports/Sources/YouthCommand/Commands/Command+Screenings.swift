import YouthSports

extension Command {
    /// The area “screenings”.
    static let screenings: [Command] = [
        Command(
            name: "screen", summary: "Record a health check with its numbers.",
            operands: [Operand(name: "PLAYER")],
            options: [
                Option(name: "by", value: "NAME", help: "who examined", isRequired: true),
                Option(name: "on", value: "DAY", help: "2026-03-14", isRequired: true),
                Option(
                    name: "measure", value: "KIND=NUMBER", help: "height=152.5cm; give it for each",
                    isRequired: true, isRepeated: true),
                Option(name: "notes", value: "TEXT", help: "what was seen"),
            ]
        ) { session in
            let arguments = session.arguments
            let screening = Screening(
                player: try Values.id(arguments.operand(0), "PLAYER"),
                heldOn: try Values.day(arguments.value("on") ?? "", "--on"),
                notes: arguments.value("notes") ?? "")
            try await session.organisation.screenings.record(
                screening, by: arguments.value("by") ?? "",
                try arguments.all("measure").map { try Values.measurement($0) })
            return try await session.finish()
        },
        Command(
            name: "sheets", summary: "List a player's health checks, newest first.",
            operands: [Operand(name: "PLAYER")]
        ) { session in
            try await session.exchange()
            let player = try Values.id(session.arguments.operand(0), "PLAYER")
            for sheet in try await session.organisation.screenings.sheets(of: player) {
                let numbers = sheet.measurements.map { "\($0.kind) \($0.value) \($0.unit)" }
                Terminal.print(
                    "\(sheet.screening.heldOn)\t\(sheet.examiner ?? "-")\t"
                        + "\(numbers.joined(separator: ", "))\t\(sheet.screening.notes)")
            }
            return .done
        },
        Command(
            name: "due", summary: "List players with consent who were not screened since a day.",
            operands: [Operand(name: "TEAM", isOptional: true)],
            options: [Option(name: "since", value: "DAY", help: "2026-01-01", isRequired: true)]
        ) { session in
            try await session.exchange()
            let day = try Values.day(session.arguments.value("since") ?? "", "--since")
            let team = try await session.team(at: 0)
            for player in try await session.organisation.screenings.due(in: team, since: day) {
                Terminal.print(Line.player(player))
            }
            try await session.used(team)
            return .done
        },
    ]
}
