import Martlet
import MartletStore
import Synchronization
import YouthSports

/// A form for one player, by lines of text: unsaved edits that hear of others' changes.
final class PlayerEditor: Sendable {
    private let draft: Draft<Player>
    /// The fields that the user may not change.
    private let locked: [String]
    /// What is answered when the player is about to change under the form.
    private let answer = Mutex(DraftAnswer.take)

    static let help = """
        Lines of standard input:
          name=…  birthday=…  shirt=…  notes=…   type into the form
          show       show the form
          take       from now on others' changes take the place of what was typed (at first)
          keep       from now on what was typed stays when others change the player
          new        from now on such a change makes this form a new player
          restore    put back what was typed and then replaced
          save       save and end
          discard    end without saving
        """

    init(_ draft: Draft<Player>, locked: [String]) {
        self.draft = draft
        self.locked = locked
        draft.onChange { [weak self] notice in
            guard let self else { return .take }
            let answer = self.answer.withLock { $0 }
            Terminal.print("notice: \(Self.words(notice)); \(Self.words(answer))")
            return answer
        }
    }

    /// Takes one line.
    /// - Returns: Whether the form goes on.
    /// - Throws: `UsageError` for a line that says nothing; what saving throws.
    func take(_ line: String) async throws -> Bool {
        switch line {
        case "": break
        case "show":
            Terminal.print(Line.player(draft.value))
            if !locked.isEmpty {
                Terminal.print("you may not change \(locked.joined(separator: ", "))")
            }
        case "take": answer.withLock { $0 = .take }
        case "keep": answer.withLock { $0 = .keep }
        case "new": answer.withLock { $0 = .saveAsNew }
        case "restore": try draft.restoreSuperseded()
        case "save":
            Terminal.print("saved player \(try await draft.save())")
            return false
        case "discard":
            draft.discard()
            return false
        default: try type(line)
        }
        return true
    }

    private func type(_ line: String) throws {
        let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            throw UsageError("“\(line)” is not understood. \(Self.help)")
        }
        guard !locked.contains(String(parts[0])) else {
            throw UsageError("You may not change the \(parts[0]) of this player.")
        }
        let value = String(parts[1])
        switch parts[0] {
        case "name": draft.update { $0.name = value }
        case "birthday":
            let day = try Values.day(value, "birthday")
            draft.update { $0.birthday = day }
        case "shirt":
            let shirt = value.isEmpty ? nil : try Values.number(value, "shirt", in: 1...99)
            draft.update { $0.shirt = shirt }
        case "notes": draft.update { $0.notes = value }
        default: throw UsageError("A player has no “\(parts[0])”. \(Self.help)")
        }
    }

    private static func words(_ notice: DraftNotice) -> String {
        guard !notice.isDeletion else { return "the player is about to be deleted" }
        let fields = notice.fields.map { $0.isConflict ? "\($0.name) (typed as well)" : $0.name }
        return "others change \(fields.sorted().joined(separator: ", "))"
    }

    private static func words(_ answer: DraftAnswer) -> String {
        switch answer {
        case .take: "their values are taken"
        case .keep: "what was typed is kept"
        case .saveAsNew: "this becomes a new player"
        }
    }
}
