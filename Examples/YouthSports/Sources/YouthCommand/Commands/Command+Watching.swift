import Martlet
import MartletStore
import YouthSports

extension Command {
    /// Commands that stay and look on.
    static let watching: [Command] = [
        Command(
            name: "edit", summary: "Edit a player in a form that hears of others' changes.",
            operands: [Operand(name: "PLAYER")], notes: PlayerEditor.help
        ) { session in
            let id = try Values.id(session.arguments.operand(0), "PLAYER")
            let draft = try await session.organisation.roster.draft(of: id)
            let editor = PlayerEditor(
                draft, locked: try await session.organisation.roster.locked(of: id))
            Terminal.print(Line.player(draft.value))
            if session.hasServer { session.organisation.client.start() }
            for await line in Terminal.lines() {
                do {
                    guard try await editor.take(line) else { return try await session.finish() }
                } catch let error as UsageError {
                    Terminal.note("youth: \(error)")
                }
            }
            draft.discard()
            return .done
        },
        Command(
            name: "watch", summary: "Show a team's players, and again after every change.",
            operands: [Operand(name: "TEAM", isOptional: true)],
            options: [
                Option(name: "times", value: "NUMBER", help: "end after showing so often")
            ],
            notes: """
                With --server it keeps exchanging meanwhile, so others' changes show as they come.
                Changes by other programs on this device show as well.
                """
        ) { session in
            let team = try await session.team(at: 0)
            let times = try session.arguments.value("times").map {
                try Values.number($0, "--times", in: 1...1_000_000)
            }
            if session.hasServer { session.organisation.client.start() }
            try await show(session.organisation.roster.watch(team: team), times: times)
            try await session.used(team)
            return .done
        },
    ]

    private static func show(
        _ rosters: DatabaseObservation<[Player]>, times: Int?
    ) async throws {
        var shown = 0
        for try await (players, change) in rosters.withChanges {
            Terminal.print("--- \(players.count) players\(words(change?.causes))")
            for player in players { Terminal.print(Line.player(player)) }
            shown += 1
            if shown == times { break }
        }
    }

    /// Why it changed, in words.
    private static func words(_ causes: DatabaseChange.Causes?) -> String {
        guard let causes else { return "" }
        let all: [(DatabaseChange.Causes, String)] = [
            (.local, "changed here"), (.remote, "changed by others"),
            (.refused, "a change of ours was refused"), (.idsAssigned, "permanent numbers"),
            (.elsewhere, "changed by another program"),
        ]
        return all.filter { causes.contains($0.0) }.map { ", \($0.1)" }.joined()
    }
}
