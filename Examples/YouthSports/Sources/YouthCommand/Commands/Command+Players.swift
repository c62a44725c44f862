import YouthSports

extension Command {
    /// The area “roster”.
    static let players: [Command] = [
        Command(
            name: "sign", summary: "Sign a player for a team.",
            operands: [Operand(name: "NAME")],
            options: [
                Option(name: "team", value: "TEAM", help: "the team", isRequired: true),
                Option(name: "birthday", value: "DAY", help: "2014-05-31", isRequired: true),
                Option(name: "shirt", value: "NUMBER", help: "1 to 99"),
                Option(name: "consent", value: nil, help: "the parents agree to health checks"),
                Option(name: "notes", value: "TEXT", help: "what the staff should know"),
            ]
        ) { session in
            let arguments = session.arguments
            let player = Player(
                name: arguments.operand(0),
                birthday: try Values.day(arguments.value("birthday") ?? "", "--birthday"),
                shirt: try arguments.value("shirt").map {
                    try Values.number($0, "--shirt", in: 1...99)
                },
                hasConsent: arguments.has("consent"), notes: arguments.value("notes") ?? "")
            let id = try await session.organisation.roster.sign(
                player, for: arguments.value("team") ?? "")
            Terminal.print("player \(id)")
            return try await session.finish()
        },
        Command(
            name: "roster", summary: "List a team's players.",
            operands: [Operand(name: "TEAM", isOptional: true)],
            notes: "Without TEAM: the team used last on this device."
        ) { session in
            try await session.exchange()
            let team = try await session.team(at: 0)
            for player in try await session.organisation.roster.roster(of: team) {
                Terminal.print(Line.player(player))
            }
            try await session.used(team)
            return .done
        },
        Command(
            name: "transfer", summary: "Move a player to another team.",
            operands: [Operand(name: "PLAYER")],
            options: [Option(name: "to", value: "TEAM", help: "the new team", isRequired: true)]
        ) { session in
            let arguments = session.arguments
            let player = try await session.organisation.roster.transfer(
                try Values.id(arguments.operand(0), "PLAYER"), to: arguments.value("to") ?? "")
            Terminal.print(Line.player(player))
            return try await session.finish()
        },
        Command(
            name: "merge", summary: "Merge a team into another one, which takes all its players.",
            operands: [Operand(name: "TEAM")],
            options: [
                Option(name: "into", value: "TEAM", help: "the team that stays", isRequired: true)
            ]
        ) { session in
            let count = try await session.organisation.roster.merge(
                session.arguments.operand(0), into: session.arguments.value("into") ?? "")
            Terminal.print("\(count) players moved")
            return try await session.finish()
        },
        Command(
            name: "consent", summary: "Note the parents' consent to health checks.",
            operands: [Operand(name: "PLAYER")],
            options: [Option(name: "withdraw", value: nil, help: "they no longer agree")]
        ) { session in
            try await session.organisation.roster.setConsent(
                !session.arguments.has("withdraw"),
                of: try Values.id(session.arguments.operand(0), "PLAYER"))
            return try await session.finish()
        },
        Command(
            name: "note", summary: "Note something about a player.",
            operands: [Operand(name: "PLAYER"), Operand(name: "TEXT")]
        ) { session in
            try await session.organisation.roster.note(
                session.arguments.operand(1),
                of: try Values.id(session.arguments.operand(0), "PLAYER"))
            return try await session.finish()
        },
        Command(
            name: "search", summary: "Find players by words of their names and notes.",
            operands: [Operand(name: "WORDS")]
        ) { session in
            try await session.exchange()
            let words = session.arguments.operand(0)
            for player in try await session.organisation.roster.search(words) {
                Terminal.print(Line.player(player))
            }
            return .done
        },
        Command(
            name: "card", summary: "Show a player's card.", operands: [Operand(name: "PLAYER")]
        ) { session in
            try await session.exchange()
            Terminal.print(
                try await session.organisation.roster.card(
                    of: try Values.id(session.arguments.operand(0), "PLAYER")))
            return .done
        },
    ]
}

/// Records as lines of text.
enum Line {
    static func player(_ player: Player) -> String {
        let id = player.id.map(String.init(describing:)) ?? ""
        let shirt = player.shirt.map { "#\($0)" } ?? "-"
        return "\(id)\t\(shirt)\t\(player.name)\t\(player.birthday)\t"
            + (player.hasConsent ? "consent" : "no consent")
    }
}
