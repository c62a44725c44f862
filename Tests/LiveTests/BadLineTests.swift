import Foundation
import LineKit
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import Synchronization
import Testing
import Waiting

/// A device at the end of a bad line: 23 kbit/s both ways, and a cut every 20 s.
///
/// The line and the device's waits are twenty times as fast here, and a first sync brings a fifth
/// of 100,000 records. With `MARTLET_LINE_SPEED=1` everything has its true size and time, which
/// takes half an hour or more.
@Suite("A device at the end of a bad line", .timeLimit(.minutes(90)))
struct BadLineTests {
    private static let speed =
        ProcessInfo.processInfo.environment["MARTLET_LINE_SPEED"].flatMap(Double.init) ?? 20
    private static let firstRecords = speed == 1 ? 100_000 : 20_000

    private static func line(to server: LiveServer) async throws -> BadLine {
        BadLine(
            to: await server.port,
            BadLine.Quality(
                bytesPerSecond: Int(2_900 * speed), secondsBetweenCuts: 20 / speed))
    }

    private static func device(
        _ name: String, _ server: LiveServer, _ line: BadLine,
        _ configure: @Sendable (inout ClientOptions) -> Void = { _ in }
    ) async throws -> MartletClient {
        let url = try #require(URL(string: line.address))
        let transport = try URLSessionTransport(server: url, token: LiveServer.token)
        return try await server.device(name, transport: transport) { options in
            let speed = Int64(Self.speed)
            options.node.backoff.first = 500 / speed
            options.node.backoff.longest = 20_000 / speed
            options.node.quickExchange = 5_000 / speed
            configure(&options)
        }
    }

    /// Tries that the page of a Wi-Fi that wants a login has ended.
    private static func isPage(_ error: any Error) -> Bool {
        (error as? SyncError)?.message == Problem.unrecognized(status: 200).detail
    }

    /// Exchanges until both sides have everything; the line cuts what it likes.
    /// - Parameter page: The line whose next new connection gets the page of a Wi-Fi that wants a login.
    /// - Returns: How many tries ended with that page.
    @discardableResult
    private static func sync(
        _ client: MartletClient, to revision: Revision = 0, page: BadLine? = nil
    ) async throws -> Int {
        let pages = Mutex(0)
        let clock = Clock()
        page?.answerWithPage(times: 1)
        let isDone = try await holds(within: .seconds(3_600)) {
            do {
                try await client.sync()
            } catch {
                if isPage(error) { pages.withLock { $0 += 1 } }
            }
            let status = try await client.status()
            clock.note("queue sent", status.outbox == 0, page?.traffic)
            clock.note("caught up", status.revision >= revision, page?.traffic)
            return status.outbox == 0 && status.revision >= revision
        }
        #expect(isDone)
        return pages.withLock { $0 }
    }

    /// Tells once how long something took.
    private final class Clock: Sendable {
        private let start = ContinuousClock.now
        private let told = Mutex<Set<String>>([])

        func note(_ what: String, _ isSo: Bool, _ traffic: BadLine.Traffic?) {
            guard let traffic, isSo, told.withLock({ $0.insert(what).inserted }) else { return }
            print(
                "\(what) after \(ContinuousClock.now - start): up \(traffic.up), down"
                    + " \(traffic.down), cuts \(traffic.cuts), connections \(traffic.connections)")
        }
    }

    private static func count(_ table: String, _ client: MartletClient) async throws -> Int64? {
        try await client.read { context in
            try context.rows("SELECT count(*) AS n FROM \(table)").first?.value("n", as: Int64.self)
        }
    }

    /// Saves players of some teams, a number of them at a time.
    private static func fill(_ client: MartletClient, players: Int, each: Int) async throws {
        let team = try await client.write { try $0.insert("teams", ["name": "Team \(each)"]) }
        var done = 0
        while done < players {
            let start = done
            try await client.write { context in
                for number in start..<start + each {
                    // Something of it is as in people's names: no compression makes it less.
                    let name =
                        "Player \(number) \(String(UInt64.random(in: 0 ... .max), radix: 36))"
                    try context.insert("players", ["team": team.sqlValue, "name": .text(name)])
                }
            }
            done += each
        }
    }

    @Test(
        "sends 300 saves and a photo of 200 kB, and gets 10,000 records; a page costs one more try")
    func queue() async throws {
        let server = try LiveServer()
        try await server.start()
        let line = try await Self.line(to: server)
        let near = try await server.device("near")
        let far = try await Self.device("far", server, line)
        try await Self.sync(far)
        // Other people work meanwhile.
        try await Self.fill(near, players: 10_000, each: 1_000)
        try await near.sync()
        // Compression does not shorten these bytes.
        var random = SystemRandomNumberGenerator()
        let photo = Data((0..<200_000).map { _ in UInt8.random(in: 0...255, using: &random) })
            .base64EncodedString()
        for number in 0..<300 {
            try await far.write { context in
                let city: SQLValue = number == 150 ? .text(photo) : .text("City \(number)")
                try context.insert("teams", ["name": .text("Team \(number)"), "city": city])
            }
        }
        let pages = try await Self.sync(far, to: try await near.status().revision, page: line)
        try await near.sync()
        // It costs the try that met it, or one piece of it.
        #expect(line.traffic.strays == 1 && pages <= 1)
        #expect(line.traffic.cuts > 0)
        for client in [near, far] {
            #expect(try await Self.count("players", client) == 10_000)
            #expect(try await Self.count("teams", client) == 301)
            #expect(try await client.parked().isEmpty)
        }
        let kept = try await near.read { context in
            try context.rows("SELECT city FROM teams WHERE name = 'Team 150'").first?["city"]
        }
        #expect(kept == .text(photo))
        await near.close()
        await far.close()
        line.close()
        await server.stop()
    }

    @Test("begins with many records")
    func begin() async throws {
        let server = try LiveServer(snapshotEvery: 1)
        try await server.start()
        let near = try await server.device("near")
        try await Self.fill(near, players: Self.firstRecords, each: 10_000)
        try await near.sync()
        let reached = try await near.status().revision
        let transport = try await server.transport()
        #expect(
            try await holds {
                try await transport.manifest()?.revision == reached
            })
        let line = try await Self.line(to: server)
        let clock = Clock()
        line.answerWithPage(times: 1)
        let (far, pages) = try await Self.opened(server, line)
        try await Self.sync(far, to: reached)
        clock.note("first sync", true, line.traffic)
        #expect(pages == 1)
        #expect(try await Self.count("players", far) == Int64(Self.firstRecords))
        #expect(line.traffic.cuts > 0 && line.traffic.strays == 1)
        await near.close()
        await far.close()
        line.close()
        await server.stop()
    }

    /// A device that begins with the snapshot; the app tries again where it is told to wait.
    /// - Returns: The device, and how many tries ended with a page.
    private static func opened(
        _ server: LiveServer, _ line: BadLine
    ) async throws -> (MartletClient, pages: Int) {
        var pages = 0
        for _ in 0..<100 {
            do {
                return (try await device("far", server, line) { $0.seeding = .server }, pages)
            } catch let error as SyncError {
                #expect(error.remedy == .wait, "\(error)")
                if isPage(error) { pages += 1 }
            }
        }
        throw CancellationError()
    }
}

/// A program that exchanges once and ends, at the end of a line that carries less than its save in one go.
@Suite("One exchange over a line that is cut", .timeLimit(.minutes(5)))
struct OneExchangeTests {
    @Test("gets a long save through in pieces, though nothing is known of the line")
    func onceOverSlowLine() async throws {
        let server = try LiveServer()
        try await server.start()
        // The cuts come by bytes: on a busy machine an interval of time may carry nothing.
        let line = BadLine(
            to: await server.port,
            BadLine.Quality(
                bytesPerSecond: 400_000, secondsBetweenCuts: 3_600, bytesBetweenCuts: 200_000))
        let url = try #require(URL(string: line.address))
        let transport = try URLSessionTransport(server: url, token: LiveServer.token)
        let far = try await server.device("far", transport: transport)
        // Compression does not shorten these bytes.
        var random = SystemRandomNumberGenerator()
        let photo = Data((0..<500_000).map { _ in UInt8.random(in: 0...255, using: &random) })
            .base64EncodedString()
        try await far.write { try $0.insert("teams", ["name": "Photo", "city": .text(photo)]) }
        try await far.sync()
        #expect(try await far.status().outbox == 0)
        #expect(line.traffic.cuts > 1)
        await far.close()
        line.close()
        await server.stop()
    }
}

/// What the page of a Wi-Fi that wants a login costs on a line that is well otherwise.
@Suite("A portal's page in between", .timeLimit(.minutes(5)))
struct PortalPageTests {
    /// A line that nothing cuts, so that every request can be counted.
    private static func line(to server: LiveServer) async -> BadLine {
        BadLine(
            to: await server.port,
            BadLine.Quality(bytesPerSecond: 10_000_000, secondsBetweenCuts: 3_600))
    }

    private static func device(
        _ server: LiveServer, _ line: BadLine,
        _ configure: @Sendable (inout ClientOptions) -> Void = { _ in }
    ) async throws -> MartletClient {
        let url = try #require(URL(string: line.address))
        let transport = try URLSessionTransport(server: url, token: LiveServer.token)
        return try await server.device("far", transport: transport) {
            $0.node.backoff.first = 10
            configure(&$0)
        }
    }

    @Test("costs one more try, whether a device sends or fetches", arguments: [true, false])
    func exchangeBehindPortal(sends: Bool) async throws {
        let server = try LiveServer()
        try await server.start()
        let line = await Self.line(to: server)
        let near = try await server.device("near")
        try await near.write { try $0.insert("teams", ["name": "Owls"]) }
        try await near.sync()
        let far = try await Self.device(server, line)
        if sends { try await far.write { try $0.insert("teams", ["name": "Hawks"]) } }
        line.answerWithPage(times: 1)
        let error = await #expect(throws: SyncError.self) { try await far.sync() }
        #expect(error?.kind == .offline && error?.remedy == .wait)
        try await far.sync()
        #expect(line.traffic.strays == 1)
        #expect(line.traffic.connections == 2)
        #expect(try await far.status().traffic.exchanges == 2)
        #expect(try await far.status().outbox == 0)
        #expect(try await far.read { try $0.rows("SELECT id FROM teams") }.count == (sends ? 2 : 1))
        await near.close()
        await far.close()
        line.close()
        await server.stop()
    }

    @Test("costs a client that keeps in step one more try, which it makes by itself")
    func started() async throws {
        let server = try LiveServer()
        try await server.start()
        let line = await Self.line(to: server)
        let far = try await Self.device(server, line) { $0.pull = .onRequest }
        try await far.write { try $0.insert("teams", ["name": "Hawks"]) }
        line.answerWithPage(times: 1)
        far.start()
        #expect(try await holds { try await far.status().outbox == 0 })
        #expect(line.traffic.strays == 1)
        #expect(try await far.status().traffic.exchanges == 2)
        await far.close()
        line.close()
        await server.stop()
    }

    @Test("costs a first download one more try")
    func download() async throws {
        let server = try LiveServer(snapshotEvery: 1)
        try await server.start()
        let near = try await server.device("near")
        try await near.write { try $0.insert("teams", ["name": "Owls"]) }
        try await near.sync()
        let transport = try await server.transport()
        #expect(try await holds { try await transport.manifest()?.revision == 1 })
        let line = await Self.line(to: server)
        line.answerWithPage(times: 1)
        let error = await #expect(throws: SyncError.self) {
            _ = try await Self.device(server, line) { $0.seeding = .server }
        }
        #expect(error?.remedy == .wait)
        let far = try await Self.device(server, line) { $0.seeding = .server }
        #expect(line.traffic.strays == 1)
        #expect(try await far.read { try $0.rows("SELECT id FROM teams") }.count == 1)
        await near.close()
        await far.close()
        line.close()
        await server.stop()
    }
}
