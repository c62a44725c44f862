import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Synchronization
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Drafts on a client", .timeLimit(.minutes(5)))
struct ClientDraftTests {
    /// Two clients of one server that both have a team and a player in it.
    private func clients() async throws -> (ours: TestClient, theirs: TestClient) {
        let server = try LocalServer()
        let (ours, theirs) = (try await TestClient(server), try await TestClient(server))
        try await theirs.run("INSERT INTO teams(id, name) VALUES (-2, 'Falcons')")
        try await theirs.insert(Player(team_id: -2, name: "Ann", shirt: 10))
        try await theirs.client.sync()
        try await ours.client.sync()
        return (ours, theirs)
    }

    /// Collects what a draft hears of, with what another reader of the file sees at that moment.
    private final class Listener: Sendable {
        private let held = Mutex<[(notice: DraftNotice, seen: String?)]>([])

        var notices: [DraftNotice] { held.withLock { $0.map(\.notice) } }
        var seen: [String?] { held.withLock { $0.map(\.seen) } }

        init(_ draft: Draft<Player>, of client: TestClient, answer: DraftAnswer = .take) {
            draft.onChange { [weak self] notice in
                let seen = client.text("SELECT name FROM players WHERE id = 1")
                self?.held.withLock { $0.append((notice, seen)) }
                return answer
            }
        }
    }

    @Test("a change by others is told before it is merged; the store trumps")
    func remoteChange() async throws {
        let (ours, theirs) = try await clients()
        let draft = try await ours.client.draft(of: ours.players, 1)
        let listener = Listener(draft, of: ours)
        draft.update {
            $0.name = "Mine"
            $0.shirt = 11
        }
        try await theirs.run("UPDATE players SET name = 'Theirs' WHERE id = 1")
        try await theirs.client.sync()
        #expect(listener.notices.isEmpty)
        try await ours.client.sync()
        #expect(listener.seen == ["Ann"])
        let notice = try #require(listener.notices.first)
        #expect(notice.causes == .remote)
        #expect(notice.fields.map(\.theirs) == ["Theirs"])
        #expect(draft.value.name == "Theirs")
        #expect(draft.superseded == ["name": "Mine"])
        try await draft.save()
        let rows = try await ours.client.read { try $0.rows("SELECT after FROM martlet_changes") }
        #expect(rows.count == 1)
        if case .blob(let bytes)? = rows.first?["after"] {
            #expect(try SyncCoder.decodeAttributes(bytes).names == ["shirt"])
        }
        try await ours.client.sync()
        #expect(try await ours.client.parked().isEmpty)
        #expect(listener.notices.count == 1)
    }

    @Test("kept edits are saved on top of the new truth, and are accepted")
    func keptEdits() async throws {
        let (ours, theirs) = try await clients()
        let draft = try await ours.client.draft(of: ours.players, 1)
        let listener = Listener(draft, of: ours, answer: .keep)
        draft.update { $0.name = "Mine" }
        try await theirs.run("UPDATE players SET name = 'Theirs' WHERE id = 1")
        try await theirs.client.sync()
        try await ours.client.sync()
        #expect(listener.notices.count == 1)
        try await draft.save()
        try await ours.client.sync()
        try await theirs.client.sync()
        #expect(theirs.text("SELECT name FROM players WHERE id = 1") == "Mine")
        #expect(try await ours.client.parked().isEmpty)
    }

    @Test("a deletion by others is told before it happens, and ends the draft")
    func remoteDeletion() async throws {
        let (ours, theirs) = try await clients()
        let draft = try await ours.client.draft(of: ours.players, 1)
        let listener = Listener(draft, of: ours)
        draft.update { $0.name = "Mine" }
        try await theirs.run("DELETE FROM players WHERE id = 1")
        try await theirs.client.sync()
        try await ours.client.sync()
        #expect(listener.notices.map(\.isDeletion) == [true])
        #expect(listener.seen == ["Ann"])
        #expect(draft.isDeleted)
        let error = await #expect(throws: DraftError.self) { try await draft.save() }
        #expect(error?.kind == .recordGone)
        try await draft.saveAsNew()
        try await ours.client.sync()
        #expect(draft.key == .integer(2))
        #expect(draft.value.name == "Mine")
        #expect(draft.editedFields.isEmpty)
    }

    @Test("a temporary id that becomes permanent is followed in silence, in references too")
    func temporaryID() async throws {
        let (ours, _) = try await clients()
        try await ours.run("INSERT INTO teams(id, name) VALUES (-2, 'Owls')")
        try await ours.run("INSERT INTO teams(id, name) VALUES (-3, 'Larks')")
        let temporary = try await ours.insert(Player(team_id: -2, name: "Bea", shirt: 20))
        let draft = try await ours.client.draft(of: ours.players, temporary)
        let moved = try await ours.client.draft(of: ours.players, temporary)
        let listener = Listener(draft, of: ours)
        draft.update { $0.name = "Beatrice" }
        moved.update { $0.team_id = -3 }
        try await ours.client.sync()
        #expect(listener.notices.isEmpty)
        #expect(draft.key == .integer(2))
        #expect(draft.value == Player(id: 2, team_id: 2, name: "Beatrice", shirt: 20))
        #expect(draft.editedFields == ["name"])
        #expect(moved.value.team_id == 3)
        try await moved.save()
        #expect(draft.value.team_id == 3)
        try await draft.save()
        try await ours.client.sync()
        #expect(try await ours.client.parked().isEmpty)
        #expect(ours.text("SELECT name || team_id FROM players WHERE id = 2") == "Beatrice3")
    }

    @Test("a refused save is told before its edits are taken back")
    func refusedSaveIsTold() async throws {
        let (ours, theirs) = try await clients()
        let draft = try await ours.client.draft(of: ours.players, 1)
        let listener = Listener(draft, of: ours)
        draft.update { $0.name = "Mine" }
        try await draft.save()
        try await theirs.run("UPDATE players SET name = 'Theirs' WHERE id = 1")
        try await theirs.client.sync()
        try await ours.client.sync()
        #expect(listener.seen == ["Mine"])
        #expect(listener.notices.first?.causes.contains(.refused) == true)
        #expect(draft.value.name == "Theirs")
        let refusal = try #require(try await ours.client.parked().first)
        // Trying again moves the record under the draft once more.
        try await ours.client.retry(refusal.identifier)
        #expect(listener.notices.count == 2)
        #expect(listener.notices.last?.causes == .local)
        #expect(draft.value.name == "Mine")
    }
}
