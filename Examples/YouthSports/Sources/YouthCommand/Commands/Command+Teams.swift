import YouthSports

extension Command {
    /// The area “teams”.
    static let teams: [Command] = [
        Command(name: "teams", summary: "List the teams with their sizes and staff.") { session in
            try await session.exchange()
            for entry in try await session.organisation.teams.overview() {
                Terminal.print(
                    "\(entry.team.name)\t\(entry.team.ageGroup)\t\(entry.players) players\t"
                        + entry.staff.joined(separator: ", "))
            }
            return .done
        },
        Command(
            name: "found", summary: "Found a team with its coach.",
            operands: [Operand(name: "TEAM")],
            options: [
                Option(
                    name: "age-group", value: "GROUP", help: "U12 and the like", isRequired: true),
                Option(name: "coach", value: "NAME", help: "who trains it", isRequired: true),
            ]
        ) { session in
            let arguments = session.arguments
            let team = Team(
                name: arguments.operand(0), ageGroup: arguments.value("age-group") ?? "")
            try await session.organisation.teams.found(team, coach: arguments.value("coach") ?? "")
            try await session.used(team.name)
            return try await session.finish()
        },
        Command(
            name: "assign", summary: "Give somebody a duty in a team; new names are taken on.",
            operands: [Operand(name: "NAME")],
            options: [
                Option(name: "team", value: "TEAM", help: "the team", isRequired: true),
                Option(
                    name: "duty", value: "DUTY", help: "coach, physio or carer", isRequired: true),
            ]
        ) { session in
            let arguments = session.arguments
            try await session.organisation.teams.assign(
                arguments.operand(0), to: arguments.value("team") ?? "",
                as: try Values.duty(arguments.value("duty") ?? ""))
            return try await session.finish()
        },
        Command(
            name: "plan", summary: "Plan an event and ask for all players of the team.",
            operands: [Operand(name: "TITLE")],
            options: [
                Option(name: "team", value: "TEAM", help: "the team", isRequired: true),
                Option(name: "on", value: "DAY", help: "2026-03-14", isRequired: true),
            ]
        ) { session in
            let arguments = session.arguments
            let event = try await session.organisation.teams.plan(
                arguments.operand(0), on: try Values.day(arguments.value("on") ?? "", "--on"),
                for: arguments.value("team") ?? "")
            Terminal.print("event \(event)")
            return try await session.finish()
        },
        Command(
            name: "present", summary: "Note who was at an event.",
            operands: [Operand(name: "EVENT")],
            options: [
                Option(
                    name: "player", value: "PLAYER", help: "a player's number; give it for each",
                    isRepeated: true)
            ]
        ) { session in
            let arguments = session.arguments
            try await session.organisation.teams.note(
                present: Set(try arguments.all("player").map { try Values.id($0, "--player") }),
                at: try Values.id(arguments.operand(0), "EVENT"))
            return try await session.finish()
        },
        Command(
            name: "events", summary: "List a team's events with who was there.",
            operands: [Operand(name: "TEAM", isOptional: true)]
        ) { session in
            try await session.exchange()
            let team = try await session.team(at: 0)
            for entry in try await session.organisation.teams.events(of: team) {
                Terminal.print(
                    "\(entry.event.id.map(String.init(describing:)) ?? "")\t\(entry.event.day)\t"
                        + "\(entry.event.title)\t\(entry.present) of \(entry.asked)")
            }
            try await session.used(team)
            return .done
        },
    ]
}
