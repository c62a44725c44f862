import Foundation
import SocketTalk
import Synchronization
import Testing
import Waiting

@testable import HTTPKit

/// One address that does at random what HTTP allows and what it does not, against a server with small limits.
private final class HostileAddress: Sendable {
    /// What one connection does.
    enum Deed: CaseIterable {
        case headThatDrips, bodyThatDrips, refusedBodyThatDrips, tooLargeBodyThatDrips
        case bodyThatStops, slowAnswers, unreadAnswer, unreadStream, manyAtOnce, noise
        case goneBeforeAnswer
    }

    static let address = "127.0.0.2"
    private let port: Int
    private let over = Mutex(false)
    private let complaints = Mutex<[String]>([])
    private let counts = Mutex<[String: Int]>([:])

    init(port: Int) { self.port = port }

    func end() { over.withLock { $0 = true } }
    private var isOver: Bool { over.withLock(\.self) }
    var faults: [String] { complaints.withLock(\.self) }
    var story: String {
        counts.withLock(\.self).sorted { $0.key < $1.key }.map { "\($0) \($1)" }.joined(
            separator: ", ")
    }

    /// Acts until it is over, each deed of a list first. Blocks.
    func act(_ seed: UInt64, _ number: Int, first deeds: [Deed]) {
        var chance = Chance(seed, number)
        for deed in deeds { perform(deed, &chance) }
        while !isOver { perform(chance.pick(Deed.allCases), &chance) }
    }

    private func perform(_ deed: Deed, _ chance: inout Chance) {
        counts.withLock { $0["\(deed)", default: 0] += 1 }
        guard let server = RawConnection(to: port, from: Self.address) else { return }
        defer { server.close() }
        let path = chance.pick(["/", "/slow"])
        switch deed {
        case .headThatDrips:
            drip(server, "POST / HTTP/1.1\r\nX: ", deed, &chance)
        case .bodyThatDrips:
            drip(server, head(path, length: HTTPAtRandomTests.bodyBytes), deed, &chance)
        case .refusedBodyThatDrips:
            drip(server, head("/refused", length: HTTPAtRandomTests.bodyBytes), deed, &chance)
        case .tooLargeBodyThatDrips:
            drip(server, head(path, length: HTTPAtRandomTests.bodyBytes * 50), deed, &chance)
        case .bodyThatStops:
            send(server, head(path, length: HTTPAtRandomTests.bodyBytes))
            send(
                server,
                String(repeating: "x", count: chance.roll(0...HTTPAtRandomTests.bodyBytes - 1)))
            pause(chance.roll(50...900))
        case .slowAnswers:
            for _ in 0..<chance.roll(1...3) {
                send(server, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
            }
            pause(chance.roll(10...500))
        case .unreadAnswer, .unreadStream:
            let name = deed == .unreadAnswer ? "whole" : "stream"
            let others = (0..<chance.roll(2...12)).compactMap { _ in
                RawConnection(to: port, from: Self.address)
            }
            // The system takes a few MiB of each answer out of the server's memory.
            let size = chance.roll(1...HTTPAtRandomTests.mostPieces)
            for other in others { send(other, "GET /\(name)?\(size) HTTP/1.1\r\nHost: h\r\n\r\n") }
            defer { for other in others { other.close() } }
            pause(chance.roll(200...1_200))
        case .manyAtOnce:
            let others = (0..<chance.roll(4...30)).compactMap { _ in
                RawConnection(to: port, from: Self.address)
            }
            for other in others {
                send(
                    other,
                    head(path, length: HTTPAtRandomTests.bodyBytes)
                        + String(repeating: "x", count: HTTPAtRandomTests.bodyBytes - 1))
            }
            pause(chance.roll(50...600))
            for other in others { other.close() }
        case .goneBeforeAnswer:
            // An unread answer makes closing a reset, and the server does not read that far ahead.
            let noise = String(repeating: "x", count: 200_000)
            for path in ["/", path] { send(server, "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n") }
            send(server, noise)
            pause(chance.roll(0...180))
        case .noise:
            let bytes = (0..<chance.roll(1...3_000)).map { _ in UInt8(chance.roll(0...255)) }
            server.send(bytes)
            pause(chance.roll(10...300))
        }
    }

    private func head(_ path: String, length: Int) -> String {
        "POST \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n"
    }

    private func send(_ server: RawConnection, _ text: String) { server.send([UInt8](text.utf8)) }

    /// Sends on and on, a byte at a time: the server has to have an end to it.
    private func drip(
        _ server: RawConnection, _ begin: String, _ deed: Deed, _ chance: inout Chance
    ) {
        let begun = ContinuousClock.now
        send(server, begin)
        let milliseconds = chance.roll(5...60)
        while ContinuousClock.now - begun < HTTPAtRandomTests.patience {
            guard server.send([120]) else { return }
            pause(milliseconds)
        }
        complaints.withLock { $0.append("\(deed) went on for \(HTTPAtRandomTests.patience)") }
    }

    private func pause(_ milliseconds: Int) {
        Thread.sleep(forTimeInterval: Double(milliseconds) / 1_000)
    }
}

/// A server with small limits, one hostile address, and an honest client at another address, whose requests
/// are all answered, soon.
///
/// `MARTLET_HTTP_WORLDS` tries so many times as many worlds, and `MARTLET_HTTP_SEED` one again.
@Suite("A server and an address that does anything", .timeLimit(.minutes(20)))
struct HTTPAtRandomTests {
    private static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["MARTLET_HTTP_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        let times = environment["MARTLET_HTTP_WORLDS"].flatMap { Int($0) } ?? 1
        return (0..<times).map { _ in UInt64.random(in: 0 ... .max) }
    }()

    static let bodyBytes = 2_000
    /// Longer than all that a server waits for together.
    static let patience = Duration.seconds(6)
    private static let waitingBytes = 12 << 20
    private static let piece = [UInt8](repeating: 65, count: 1 << 20)
    /// Of the greatest answer.
    static let mostPieces = 24

    private static func answer(_ request: HTTPRequest) async -> HTTPResponse {
        var response = HTTPResponse(status: 200, text: "\(request.body.count)\n")
        let count = request.query.flatMap { Int($0) } ?? 1
        switch request.path {
        case "/slow": try? await Task.sleep(for: .milliseconds(150))
        case "/whole": response.body = Array(repeating: piece, count: count)
        case "/stream":
            response.stream = { writer in
                for _ in 0..<count { try await writer.write(piece) }
            }
        default: break
        }
        return response
    }

    /// Waits until nothing of the requests is left.
    /// - Returns: What stays although nobody is connected; nil if nothing does.
    private static func whatStays(on server: HTTPServer) async -> String? {
        var left = HTTPServerCounters()
        do {
            try await waitUntil("nothing is left") {
                left = await server.counters()
                return left.openConnections == 0 && left.requestsInFlight == 0
                    && left.bodyBytesInFlight == 0 && left.waitingBytes == 0
                    && left.openStreams == 0
            }
            return nil
        } catch {
            return "\(error) \(left)"
        }
    }

    @Test("each request of others is answered, and nothing is left behind", arguments: seeds)
    func worldOfRequests(seed: UInt64) async throws {
        var options = HTTPServerOptions()
        (options.maxBodyBytes, options.maxBodyBytesInFlight) = (Self.bodyBytes, 4 * Self.bodyBytes)
        (options.maxRequestsInFlight, options.maxConnectionsPerAddress) = (12, 24)
        (options.headDeadline, options.bodyDeadline) = (.milliseconds(500), .seconds(1))
        options.idleTimeout = .seconds(1)
        options.maxWaitingBytes = Self.waitingBytes
        let server = HTTPServer(options: options) { request in
            request.path == "/refused"
                ? .refused(HTTPResponse(status: 401, text: "Who are you?\n"))
                : .admitted(party: nil)
        } handler: {
            await Self.answer($0)
        }
        let port = try await server.start()
        let hostile = HostileAddress(port: port)
        let (ends, end) = AsyncStream<Void>.makeStream()
        let deeds = HostileAddress.Deed.allCases
        var chance = Chance(seed, -1)
        let mixed = deeds.shuffled(using: &chance)
        let actors = 5
        for number in 0..<actors {
            let own = mixed.enumerated().filter { $0.offset % actors == number }.map(\.element)
            Thread.detachNewThread {
                hostile.act(seed, number, first: own)
                end.yield()
            }
        }
        var faults: [String] = []
        let pulse = Pulse()
        let beating = Task { await pulse.beat() }
        var most = 0
        let begun = ContinuousClock.now
        var count = 0
        while ContinuousClock.now - begun < .seconds(5) {
            most = max(most, await server.counters().waitingBytes)
            let asked = ContinuousClock.now
            let client = RawClient(port: port)
            let body = String(repeating: "b", count: Self.bodyBytes)
            await client.send(
                "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: \(body.count)\r\n\r\n\(body)"
            )
            let answer = await client.readAll()
            count += 1
            if !answer.hasSuffix("\r\n\r\n\(body.count)\n") {
                faults.append("request \(count) got \(answer.prefix(200))")
            }
            let took = ContinuousClock.now - asked
            // On a starved machine, the test itself waits for its turn.
            let starved = pulse.takeDelay()
            if took - starved > .seconds(4) { faults.append("request \(count) took \(took)") }
        }
        beating.cancel()
        hostile.end()
        var acting = actors
        for await _ in ends {
            acting -= 1
            if acting == 0 { break }
        }
        faults += hostile.faults
        // One answer is there before it is seen that it is too much.
        if most > Self.waitingBytes + (Self.mostPieces + 1) << 20 {
            faults.append("\(most) bytes waited for clients")
        }
        if let left = await Self.whatStays(on: server) { faults.append(left) }
        await server.stop(grace: .zero)
        #expect(
            faults.isEmpty, "seed \(seed): \(faults.prefix(5)); \(count) requests; \(hostile.story)"
        )
    }
}

/// Measures how long the tasks of this process wait for their turn.
private final class Pulse: Sendable {
    private let delay = Mutex(Duration.zero)

    /// Sleeps again and again, and adds up what it sleeps too long, until it is cancelled.
    func beat() async {
        let rest = Duration.milliseconds(20)
        while !Task.isCancelled {
            let begun = ContinuousClock.now
            try? await Task.sleep(for: rest)
            let excess = ContinuousClock.now - begun - rest
            delay.withLock { $0 += max(excess, .zero) }
        }
    }

    /// Returns the sum since the last call.
    func takeDelay() -> Duration {
        delay.withLock { delay in
            defer { delay = .zero }
            return delay
        }
    }
}
