import Foundation
import Martlet
import MartletDevice
internal import MartletModel
import SocketTalk
import Testing
import Waiting

/// A server that a member and strangers abuse at random, and an honest device that exchanges through it.
///
/// `MARTLET_HOSTILE_WORLDS` tries so many times as many worlds as usual, and `MARTLET_HOSTILE_SEED` one
/// again.
@Suite("A hostile member and hostile strangers", .timeLimit(.minutes(30)))
struct HostileMemberTests {
    private static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["MARTLET_HOSTILE_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        let times = environment["MARTLET_HOSTILE_WORLDS"].flatMap { Int($0) } ?? 1
        return (0..<2 * times).map { _ in UInt64.random(in: 0 ... .max) }
    }()

    private static let members = 4
    private static let strangers = 3
    /// The honest device's saves while the others act.
    private static let saves: Int64 = 15
    /// The exchanges that may fail in a row.
    private static let mostFailures = 4
    /// The files that the server may have open in the end. Each kind of reader of a data set opens its
    /// files when it is first asked; all of them have 13, there are three data sets, and the process has
    /// about 20 others.
    private static let mostFiles = 66
    /// Resident bytes of the server at most, as its limits are: 256 MiB of bodies, 256 MiB of answers that
    /// wait for clients, 64 MiB of change sets for each of three data sets, and 16 answers in the making,
    /// each of up to 10 MiB and with a copy.
    private static let mostBytes = 1 << 30

    @Test("keep no honest device out, and leave nothing behind", arguments: seeds)
    func worldOfHostileMembers(seed: UInt64) async throws {
        let server = try ServerProcess()
        try await server.start()
        let honest = try await server.client(
            "honest", token: try await server.makeToken(user: "honest"))
        try await honest.sync()
        let hostile = HostileActor.Tokens(
            league: try await server.makeToken(user: "hostile"),
            still: try await server.makeToken(user: "hostile", dataSet: "still"),
            pairs: try await server.makeToken(user: "hostile", dataSet: "pairs"))
        let pairs = try await server.makeToken(user: "honest", dataSet: "pairs")
        let before = Self.connections(try await server.openFiles())
        let book = HostileActor.Book()
        let port = try await server.address.port ?? 0
        let (ends, end) = AsyncStream<Void>.makeStream()
        let deeds = HostileActor.dealt(seed, members: Self.members, strangers: Self.strangers)
        for number in 0..<Self.members + Self.strangers {
            let actor = HostileActor(
                port: port, tokens: number < Self.members ? hostile : .init(), number: number,
                book: book)
            Thread.detachNewThread {
                actor.act(seed: seed, first: deeds[number])
                end.yield()
            }
        }
        let pair = HonestPair(port: port, token: pairs)
        Thread.detachNewThread {
            pair.act()
            end.yield()
        }
        let fault = await Self.fault { try await Self.work(honest, book) }
        book.end()
        pair.end()
        var left = Self.members + Self.strangers + 1
        for await _ in ends {
            left -= 1
            if left == 0 { break }
        }
        let peak = try await server.peakMemory()
        let isClosed = try await holds(within: .seconds(60)) {
            let files = try await server.openFiles()
            return Self.connections(files) <= before + 4 && files.count <= Self.mostFiles
        }
        let files = try await server.openFiles()
        try await honest.sync()
        let told = try await Self.toldAfterTheEnd(seed, server, honest, port)
        let marks = try await honest.count("SELECT count(*) FROM marks WHERE writer = 99")
        let parked = try await honest.status().parked
        if fault != nil || !isClosed || peak > Self.mostBytes || marks != book.saves
            || parked > 0 || pair.fault != nil || !told.isEmpty
        {
            Issue.record(
                """
                seed \(seed): \(fault.map { "\($0)" } ?? "the honest device got through"); \
                \(marks) of \(book.saves) saves, \(parked) parked; \(before) connections, \
                then \(Self.connections(files)); \(files.count) open files; at most \(peak >> 20) MiB
                \(pair.fault ?? "sets waited for others"); heard after the token's end: \(told)
                \(book.story)
                \(files.sorted().joined(separator: " "))
                \(server.lastLines)
                """)
        }
        await honest.close()
        #expect(await server.stop() == 0)
    }

    private static func connections(_ files: [String]) -> Int {
        files.count { $0.hasPrefix("socket:") }
    }

    private static func fault(_ body: () async throws -> Void) async -> (any Error)? {
        do {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    /// Lets polls wait, takes their token away, and saves.
    /// - Returns: What they heard of that.
    private static func toldAfterTheEnd(
        _ seed: UInt64, _ server: ServerProcess, _ honest: MartletClient, _ port: Int
    ) async throws -> [String] {
        var chance = Chance(seed, -2)
        let listeners = EndedListeners(port: port, token: try await server.makeToken(user: "ended"))
        listeners.listen(since: try await honest.status().revision, &chance)
        // They are there before their token ends, or hear that it has.
        try await Task.sleep(for: .milliseconds(chance.roll(100...700)))
        try await server.revokeTokens(user: "ended")
        try await waitUntil("the token is good no more") { listeners.isEnded }
        let words = "after the end \(seed)"
        try await honest.write {
            try $0.insert("marks", ["writer": 97, "number": 0, "edits": 0, "label": .text(words)])
        }
        try await honest.sync()
        try await Task.sleep(for: .milliseconds(700))
        return listeners.heard(words)
    }

    /// Saves and exchanges; each exchange succeeds after few tries.
    private static func work(_ client: MartletClient, _ book: HostileActor.Book) async throws {
        while book.saves < saves || book.finished < members + strangers {
            let number = book.saves
            try await client.write {
                try $0.insert("marks", ["writer": 99, "number": .integer(number), "edits": 0])
            }
            book.noteSave()
            var failures = 0
            while true {
                do {
                    try await waitUntil("an exchange ended", within: .seconds(60)) {
                        try await client.sync()
                        return try await client.status().outbox == 0
                    }
                    break
                } catch let error as SyncError {
                    failures += 1
                    guard failures <= mostFailures else { throw error }
                    // As long as the server asks for.
                    try await Task.sleep(for: .milliseconds(500))
                }
            }
        }
    }
}
