import Foundation
import MartletModel
import MartletProtocol
import SocketTalk
import Synchronization

/// One request's way through the hostile network.
struct HostileWay {
    let core: HostileNetwork.Core
    let device: Int
    let number: Int
    let connection: RawConnection
    let line: Line

    /// The most bytes of a stream that are kept.
    private static let mostKept = 64 << 10

    /// Does what is to be done with the request.
    /// - Returns: Whether the connection can take another request.
    func perform(_ deed: Deed, _ request: Letter) -> Bool {
        switch deed {
        case .pass: return pass(request)
        case .stray(let answer):
            tell(request, "another program says \(answer.lines[0]), \(answer.body.count) B")
            send(answer.bytes)
            return false
        case .cutUp(let offset, let cut):
            tell(request, "cut at byte \(offset) of the request, \(cut)")
            return cutUp(request, offset, cut)
        case .cutDown(let chance, let cut):
            return passPart(request, chance, "cut", pause: 0, cut)
        case .silence(let chance, let milliseconds):
            return passPart(request, chance, "silence", pause: milliseconds, .end)
        case .strip(let chance): return strip(request, chance)
        case .again(let times):
            tell(request, "sent \(times) times")
            for _ in 1..<times { _ = answer(to: request, core.target, notes: false) }
            return pass(request)
        case .swap(let chance): return swap(request, chance)
        case .misdirect(let chance): return misdirect(request, chance)
        case .collect(let milliseconds):
            tell(request, "collected for \(milliseconds) ms")
            return collect(request, milliseconds)
        case .misframe(var chance):
            guard request.path != "/deltas" else { return pass(request) }
            guard var answer = answer(to: request, core.target) else { return false }
            answer.frame(&chance)
            tell(request, "framed anew: \(answer.lines.suffix(2))")
            send(answer.bytes)
            return false
        case .elsewhere:
            tell(request, "answered by a server with other data")
            return pass(request, to: core.other)
        case .short(let most, let cut): return passShort(request, most, cut)
        case .stale: return pass(request)
        }
    }

    private func passShort(_ request: Letter, _ most: Int, _ cut: Deed.Cut) -> Bool {
        guard request.bytes.count <= most else { return cutUp(request, most, cut) }
        guard request.path != "/deltas" else {
            return stream(request, to: core.target, limit: most, cut)
        }
        guard let answer = answer(to: request, core.target) else { return false }
        let bytes = Array(answer.bytes.prefix(most))
        core.state.withLock { $0.carried[request.kind, default: 0] += bytes.count }
        guard bytes.count < answer.bytes.count else {
            return send(bytes) && answer.value("content-length") != nil
        }
        tell(request, "cut at byte \(most) of the answer's \(answer.bytes.count)")
        send(bytes)
        end(cut)
        return false
    }

    private func tell(_ request: Letter, _ what: String) {
        core.tell(
            "device \(device) request \(number) \(request.lines[0].prefix(90)) (\(request.body.count) B):"
                + " \(what)")
    }

    /// Passes a request and its answer on, by the line.
    func pass(_ request: Letter, to port: Int? = nil) -> Bool {
        guard request.path != "/deltas" else { return stream(request, to: port ?? core.target) }
        guard let answer = answer(to: request, port ?? core.target) else { return false }
        return send(answer.bytes) && answer.value("content-length") != nil
    }

    /// Ends the connection.
    func end(_ cut: Deed.Cut) {
        if cut == .reset { connection.reset() }
    }

    // MARK: - To the server

    private func open(_ request: Letter, _ port: Int) -> RawConnection? {
        guard let server = RawConnection(to: port) else { return nil }
        let isWanted = core.state.withLock { $0.open.insert(server).inserted }
        precondition(isWanted)
        var request = request
        request.set("Connection", "close")
        pause(line.latency)
        send(request.bytes, to: server)
        return server
    }

    private func close(_ server: RawConnection) {
        core.state.withLock { _ = $0.open.remove(server) }
        server.close()
    }

    /// The whole answer to a request; nil if none came.
    private func answer(to request: Letter, _ port: Int, notes: Bool = true) -> Letter? {
        guard let server = open(request, port) else { return nil }
        defer { close(server) }
        let reader = LetterReader(server)
        guard var answer = reader.head() else { return nil }
        answer.body = reader.rest()
        answer.remove("connection")
        if answer.value("martlet-request") != nil {
            core.state.withLock { $0.named[device, default: 0] += 1 }
        }
        if notes { note(request, answer) }
        return answer
    }

    private func note(_ request: Letter, _ answer: Letter) {
        let problem = SyncCoder.decodeProblem(answer.body, status: answer.status)
        let isRefusal =
            problem.isOfServer || answer.value("martlet-answer")?.hasPrefix("200 ") == false
        core.state.withLock { state in
            state.mail[request.kind, default: []].append(
                HostileNetwork.Mail(request: request, answer: answer))
            if isRefusal { state.refusals[device, default: 0] += 1 }
        }
        if isRefusal {
            tell(
                request,
                "the server refuses: \(String(decoding: answer.body.prefix(300), as: UTF8.self))")
        }
    }

    private func stream(
        _ request: Letter, to port: Int, limit: Int = .max, pause milliseconds: Int = 0,
        _ cut: Deed.Cut = .end, change: (inout Letter) -> Void = { _ in }
    ) -> Bool {
        guard let server = open(request, port) else { return false }
        defer { close(server) }
        let reader = LetterReader(server)
        guard var head = reader.head() else { return false }
        let isStream = head.status == 200
        if !isStream {
            head.body = reader.rest()
            note(request, head)
        }
        change(&head)
        var sent = 0
        var kept: [UInt8] = []
        var bytes = head.bytes
        while !bytes.isEmpty {
            guard send(Array(bytes.prefix(limit - sent))) else { break }
            sent += bytes.count
            guard sent < limit else {
                self.pause(milliseconds)
                end(cut)
                break
            }
            bytes = isStream ? reader.next() : []
            if kept.count < Self.mostKept { kept += bytes }
        }
        guard isStream else { return false }
        head.body = kept
        let mail = HostileNetwork.Mail(request: request, answer: head)
        core.state.withLock { $0.mail[request.kind, default: []].append(mail) }
        return false
    }

    // MARK: - Deeds

    private func cutUp(_ request: Letter, _ offset: Int, _ cut: Deed.Cut) -> Bool {
        guard let server = RawConnection(to: core.target) else { return false }
        defer { server.close() }
        send(Array(request.bytes.prefix(offset)), to: server)
        if cut == .reset { server.reset() }
        end(cut)
        return false
    }

    private func passPart(
        _ request: Letter, _ chance: Chance, _ what: String, pause milliseconds: Int,
        _ cut: Deed.Cut
    ) -> Bool {
        var chance = chance
        guard request.path != "/deltas" else {
            let limit = chance.offset(in: chance.pick([300, 3_000, 30_000]))
            tell(request, "\(what) after \(limit) bytes of the stream, \(milliseconds) ms")
            return stream(
                request, to: core.target, limit: limit, pause: milliseconds, cut)
        }
        guard let answer = answer(to: request, core.target) else { return false }
        let bytes = answer.bytes
        // An answer that is cut behind its last byte has come.
        let offset = min(chance.offset(in: bytes.count), bytes.count - 1)
        tell(
            request, "\(what) at byte \(offset) of the answer's \(bytes.count), \(milliseconds) ms")
        send(Array(bytes.prefix(offset)))
        pause(milliseconds)
        end(cut)
        return false
    }

    private func strip(_ request: Letter, _ chance: Chance) -> Bool {
        var (chance, request) = (chance, request)
        if chance.percent(50) {
            let names = request.names.filter { $0 != "content-length" && $0 != "host" }
            let name = chance.pick(names)
            tell(request, "without the request's \(name)")
            request.remove(name)
            return pass(request)
        }
        if request.path == "/deltas" {
            return stream(request, to: core.target) { head in
                let name = chance.pick(head.names)
                tell(request, "without the stream's \(name)")
                head.remove(name)
            }
        }
        guard var answer = answer(to: request, core.target) else { return false }
        let name = chance.pick(answer.names)
        tell(request, "without the answer's \(name)")
        answer.remove(name)
        send(answer.bytes)
        return false
    }

    private func swap(_ request: Letter, _ chance: Chance) -> Bool {
        var chance = chance
        let kept = core.state.withLock { $0.mail[request.kind] ?? [] }
        guard !kept.isEmpty else { return pass(request) }
        let mail = chance.pick(Array(kept.suffix(12)))
        if request.path != "/deltas" { _ = answer(to: request, core.target) }
        tell(request, "gets the answer to \(mail.request.lines[0].prefix(90))")
        return send(mail.answer.bytes) && mail.answer.value("content-length") != nil
    }

    private func misdirect(_ request: Letter, _ chance: Chance) -> Bool {
        var chance = chance
        let kept = core.state.withLock { $0.mail[request.kind] ?? [] }
        guard !kept.isEmpty else { return pass(request) }
        let mail = chance.pick(Array(kept.suffix(12)))
        tell(request, "in its place goes \(mail.request.lines[0].prefix(90))")
        guard request.path != "/deltas" else { return stream(mail.request, to: core.target) }
        guard let answer = answer(to: mail.request, core.target, notes: false) else { return false }
        return send(answer.bytes) && answer.value("content-length") != nil
    }

    private func collect(_ request: Letter, _ milliseconds: Int) -> Bool {
        guard request.path == "/deltas" else {
            pause(milliseconds)
            return pass(request)
        }
        guard let server = open(request, core.target) else { return false }
        defer { close(server) }
        let reader = LetterReader(server)
        let end = ContinuousClock.now + .milliseconds(milliseconds)
        var held: [UInt8] = []
        while true {
            let bytes = reader.next()
            held += bytes
            guard !bytes.isEmpty, ContinuousClock.now < end else { break }
        }
        guard send(held) else { return false }
        while true {
            let bytes = reader.next()
            guard !bytes.isEmpty, send(bytes) else { return false }
        }
    }

    // MARK: - The line

    @discardableResult
    private func send(_ bytes: [UInt8]) -> Bool {
        pause(line.latency)
        return send(bytes, to: connection)
    }

    @discardableResult
    private func send(_ bytes: [UInt8], to connection: RawConnection) -> Bool {
        // A long answer in tiny packets would take the processor, not the network.
        let piece = max(line.piece, bytes.count / 200 + 1)
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + piece)
            if let speed = line.bytesPerSecond { pause((end - start) * 1_000 / speed) }
            guard connection.send(Array(bytes[start..<end])) else { return false }
            start = end
        }
        return true
    }

    private func pause(_ milliseconds: Int) {
        guard milliseconds > 0 else { return }
        Thread.sleep(forTimeInterval: Double(milliseconds) / 1_000)
    }
}
