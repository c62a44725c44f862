import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import MartletStore
import Testing
import Waiting

/// The real server program, killed with SIGKILL while real devices write.
@Suite("A server that is killed", .timeLimit(KillCount.limit(minutes: 5)))
struct ServerKillTests {
    private static let kills = KillCount.kills(25)
    private static let writers = 6
    /// Change sets in the outbox beyond which a writer waits before it writes.
    private static let outboxLimit = 30

    @Test("kills under load: 0 lost, 0 double, no gap, every replica whole")
    func nothingIsLost() async throws {
        let server = try ServerProcess()
        try await server.start()
        var clients: [MartletClient] = []
        for writer in 0..<Self.writers {
            clients.append(try await server.client("writer-\(writer)"))
        }
        let accepted = Milestones()
        let isOver = Milestones()
        let saved = try await withThrowingTaskGroup(of: [ServerAccount.Mark].self) { group in
            for (writer, client) in clients.enumerated() {
                group.addTask {
                    try await Self.write(client, Int64(writer), accepted) {
                        isOver.count > 0
                    }
                }
            }
            group.addTask {
                defer { isOver.add() }
                try await Self.kill(server, accepted)
                return []
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        print("\(Self.kills) kills of a server on a file, \(saved.count) change sets saved")
        try await Self.check(try await server.address, clients, saved: saved)
        #expect(await server.stop() == 0)
    }

    /// Kills the server again and again, each time after it has accepted a few more sets; every
    /// fifth time as soon as it listens.
    private static func kill(_ server: ServerProcess, _ accepted: Milestones) async throws {
        for kill in 1...kills {
            if kill % 5 != 0 {
                try await accepted.wait(for: accepted.count + Int.random(in: 10...120))
            }
            await server.kill()
            try await server.start()
        }
    }

    /// Writes marks and keeps in step until told to stop.
    /// - Returns: What was saved.
    static func write(
        _ client: MartletClient, _ writer: Int64, _ accepted: Milestones,
        until isOver: @Sendable () -> Bool
    ) async throws -> [ServerAccount.Mark] {
        let events = client.events
        let listening = Task {
            for await event in events {
                if case .receipt(let receipt) = event, receipt.outcome == .accepted {
                    accepted.add()
                }
            }
        }
        defer { listening.cancel() }
        client.start()
        var saved: [ServerAccount.Mark] = []
        while !isOver() {
            guard try await client.status().outbox < outboxLimit else {
                _ = try? await client.sync()
                continue
            }
            let mark = ServerAccount.Mark(writer: writer, number: Int64(saved.count))
            try await client.write { context in
                let id = try context.insert(
                    "marks",
                    ["writer": .integer(mark.writer), "number": .integer(mark.number), "edits": 0])
                try context.insert("notes", ["mark": id.sqlValue, "number": .integer(mark.number)])
            }
            saved.append(mark)
        }
        return saved
    }

    /// Returns a server's account as soon as it has reached a revision, or the one it has after 30 seconds.
    /// A server that shares its database answers from memory. After failed looks at the database, its next
    /// look for another server's writes comes up to two seconds later.
    private static func account(
        of server: URL, through revision: Revision
    ) async throws -> ServerAccount {
        var account = try await ServerAccount(of: server, token: ServerProcess.token)
        _ = try await holds(within: .seconds(30)) {
            if account.revision >= revision { return true }
            account = try await ServerAccount(of: server, token: ServerProcess.token)
            return false
        }
        return account
    }

    /// Brings everybody in step and looks for every save, once, in the log and in every replica.
    /// - Parameter servers: Those whose last log lines are told if the account is not whole.
    static func check(
        _ server: URL, _ clients: [MartletClient], saved: [ServerAccount.Mark],
        servers: [ServerProcess] = []
    ) async throws {
        for client in clients { try await client.converge() }
        // Now that nobody writes, everybody fetches what the others sent last.
        for client in clients { try await client.converge() }
        let account = try await account(of: server, through: Revision(saved.count))

        let expected = Dictionary(uniqueKeysWithValues: saved.map { ($0, 1) })
        #expect(account.marks == expected, "each save is on the server exactly once")
        #expect(
            account.revision == Revision(saved.count),
            "\(servers.map(\.lastLines).joined(separator: "\n--- another server\n"))")
        var told: [Revision] = []
        for client in clients {
            #expect(try await client.marks() == expected, "a replica differs")
            #expect(
                try await client.count("SELECT count(*) FROM notes") == Int64(saved.count))
            #expect(
                try await client.count(
                    "SELECT count(*) FROM notes JOIN marks ON marks.id = mark"
                        + " WHERE marks.number = notes.number") == Int64(saved.count))
            #expect(try await client.status().parked == 0)
            told += try await client.receipts(limit: saved.count + 1).compactMap(\.revision)
            await client.close()
        }
        // Each set was told one revision, also where the first answer was lost with the server.
        #expect(told.sorted() == Array(1...account.revision))
    }
}
