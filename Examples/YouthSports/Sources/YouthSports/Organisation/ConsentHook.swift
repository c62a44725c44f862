import MartletStore

extension WriteHooks {
    /// Forbids screenings of players whose parents have not agreed, whoever writes them.
    static func consent() -> WriteHooks {
        var hooks = WriteHooks()
        hooks.before([.insert], of: "screenings") { write, context in
            let players = Players()
            guard let player = try write.values?.value("player_id", as: RecordID.self),
                try players.find(player, in: context)?.hasConsent == true
            else {
                throw StoreError(
                    .vetoed,
                    "The player's parents have not agreed to health checks. Ask them, and note it"
                        + " with “consent”.")
            }
        }
        return hooks
    }
}
