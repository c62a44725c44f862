internal import CompressionKit
internal import Martlet
internal import MartletDevice
internal import MartletModel

/// The network between devices and server.
extension Simulator {
    /// Returns how many milliseconds a message takes, apart from its bytes.
    func delay() -> Int64 {
        let spread = max(1, faults.longestDelay - faults.shortestDelay)
        return Int64(1 + faults.shortestDelay + random.below(spread))
    }

    /// Sends bytes over one direction of a device's line, after the bytes that are on it.
    /// - Returns: The time at which the last of them has left.
    func occupy(
        _ way: ReferenceWritableKeyPath<DeviceMachine, Int64>, of device: DeviceMachine,
        with bytes: Int
    ) -> Int64 {
        guard faults.bytesPerSecond > 0 else { return now }
        let begin = max(now, device[keyPath: way])
        device[keyPath: way] = begin + Int64(bytes * 1_000 / faults.bytesPerSecond)
        if device[keyPath: way] - now > 1_000 { report.happened(.slowLine) }
        return device[keyPath: way]
    }

    /// Tells the device about the bytes of an exchange while they move.
    private func tellProgress(_ exchange: Int, until end: Int64, of device: DeviceMachine) {
        for moment in stride(from: now + Int64(Self.progressPause), to: end, by: Self.progressPause)
        {
            queue.put(
                .deviceEvent(
                    device: device.number, life: device.life, .progress(exchange: exchange)),
                at: moment)
        }
    }

    private static var progressPause: Int { 4_000 }

    /// Ends a device's wait for an answer. Its line carries no more bytes of the exchange.
    func giveUp(_ exchange: Int, of device: DeviceMachine) throws {
        if device.moved.exchange == exchange, now - device.moved.time < device.patience {
            throw failure(
                "device \(device.number) gave an exchange up although its bytes moved"
                    + " \(now - device.moved.time) ms ago")
        }
        device.upBusyUntil = now
        device.downBusyUntil = now
    }

    /// Sends a device's request, once, twice or never.
    func send(_ exchange: Int, body: [UInt8], from device: DeviceMachine) {
        device.moved = (exchange, now)
        guard now >= device.isolatedUntil else {
            report.lostMessages += 1
            return
        }
        let sent = occupy(\.upBusyUntil, of: device, with: body.count)
        if isBehindPortal(device) {
            let page = strangeAnswer(true: [])
            tell(.device(device.number)) { "its network answers \(page.status)" }
            return queue.put(
                .answer(device: device.number, life: device.life, exchange: exchange, page),
                at: sent + delay())
        }
        let copies = random.chance(faults.doubledRequests) ? 2 : 1
        report.doubledMessages += copies - 1
        if copies > 1 { report.happened(.doubledMessage) }
        tellProgress(exchange, until: sent, of: device)
        for _ in 0..<copies {
            if random.chance(faults.lostRequests) {
                report.lostMessages += 1
                report.happened(.lostRequest)
                tell(.device(device.number)) { "a request of it is lost" }
                continue
            }
            let arrival = sent + delay()
            if arrival < device.newestRequest { report.happened(.overtaking) }
            device.newestRequest = max(device.newestRequest, arrival)
            queue.put(
                .request(
                    WaitingRequest(
                        device: device.number, life: device.life, exchange: exchange, body: body,
                        sender: sender(device.number))),
                at: arrival)
        }
    }

    /// Sends the server's answer, or the answer that the network makes of it.
    func send(_ answer: ServerMachine.Answer, for request: WaitingRequest) {
        let device = devices[request.device]
        let answer = onTheWay(answer, to: device)
        let copies = random.chance(faults.doubledAnswers) ? 2 : 1
        report.doubledMessages += copies - 1
        if copies > 1 { report.happened(.doubledMessage) }
        for _ in 0..<copies {
            if random.chance(faults.lostAnswers) {
                report.lostMessages += 1
                report.happened(.lostAnswer)
                tell(.device(request.device)) { "an answer to it is lost" }
                continue
            }
            let sent = occupy(\.downBusyUntil, of: device, with: answer.body.count)
            if device.life == request.life {
                tellProgress(request.exchange, until: sent, of: device)
            }
            let arrival = sent + delay()
            if arrival < device.newestAnswer { report.happened(.overtaking) }
            device.newestAnswer = max(device.newestAnswer, arrival)
            queue.put(
                .answer(
                    device: request.device, life: request.life, exchange: request.exchange,
                    answer),
                at: arrival)
        }
    }

    // MARK: - Who else answers

    /// Returns whether the device's network demands a login now.
    func isBehindPortal(_ device: DeviceMachine) -> Bool {
        if now >= device.portalUntil, random.below(1_000) < faults.portals {
            report.happened(.portal)
            device.portalUntil = now + Int64(random.below(180_000))
        }
        return now < device.portalUntil
    }

    private func onTheWay(
        _ answer: ServerMachine.Answer, to device: DeviceMachine
    ) -> ServerMachine.Answer {
        if random.chance(faults.mixedAnswers), let other = random.pick(newestAnswers) {
            report.happened(.mixedAnswer)
            tell(.device(device.number)) { "it is given another answer" }
            return other
        }
        if answer.status == 200 { newestAnswers = newestAnswers.suffix(7) + [answer] }
        guard random.chance(faults.strangeAnswers) else { return answer }
        report.happened(.strangeAnswer)
        let strange = strangeAnswer(true: answer.body)
        tell(.device(device.number)) { "something on the way answers \(strange.status)" }
        return strange
    }

    /// Returns the answer of a portal or a proxy in place of the server.
    /// - Parameter body: The compressed body of the server's answer; empty if the server was not
    ///   asked.
    func strangeAnswer(true body: [UInt8]) -> ServerMachine.Answer {
        let status =
            random.chance(60)
            ? Self.strangeStatuses[random.below(Self.strangeStatuses.count)]
            : 100 + random.below(500)
        var bytes = Array(Self.pages[random.below(Self.pages.count)].utf8)
        if random.chance(20), let whole = try? inflated(body) {
            bytes = Array(whole.prefix(random.below(whole.count)))
        }
        let waits: [Int64?] = [nil, nil, 0, -1, 30, 86_400, .max]
        return ServerMachine.Answer(
            status: status, body: Gzip.compress(bytes), retryAfter: waits[random.below(7)])
    }

    private static let strangeStatuses = [
        200, 200, 200, 204, 302, 304, 400, 401, 403, 404, 407, 408, 409, 410, 413, 414, 421, 429,
        431, 500, 502, 503, 504, 511, 520,
    ]

    private static let pages = [
        "", "<!DOCTYPE html><html><body><form action=\"/login\">Your room?</form></body></html>",
        "{}", "[]", "null", "{\"error\":\"login required\"}",
        "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403}",
        "{\"kind\":\"quota\",\"detail\":\"Your plan has ended.\",\"status\":403}",
        "upstream connect error or disconnect/reset before headers",
    ]
}
