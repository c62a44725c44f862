internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Names exchanges, and decides how long the device waits for one.
extension DeviceNode {
    /// Returns the name that an answer has to repeat, so that the device does not accept an answer
    /// to another request.
    func name(of exchange: Int) -> String { "\(owner.suffix(12)).\(exchange)" }

    func send(_ exchange: Int, _ body: [UInt8], now: Int64) -> [Action] {
        let timer = number()
        state = .exchanging(exchange: exchange, timer: timer)
        requestBytes = body.count
        asked = now
        return [
            .send(exchange: exchange, body: body),
            .setTimer(timer, milliseconds: options.exchangeTimeout),
        ]
    }

    /// Notes that bytes have moved. The device waits for the exchange as long as they do.
    func progress(_ exchange: Int, now: Int64) -> [Action] {
        guard isCurrent(exchange) else { return [] }
        // If this fails, the lease ends as if no bytes had moved.
        try? store.renewLease(owner: owner, until: now + options.exchangeTimeout * 2)
        let timer = number()
        state = .exchanging(exchange: exchange, timer: timer)
        return [.setTimer(timer, milliseconds: options.exchangeTimeout)]
    }

    /// Returns whether an answer belongs to the current request. An older server repeats nothing.
    func isOwn(_ answer: SyncAnswer, _ exchange: Int) throws -> Bool {
        let own = try store.clientID
        return (answer.request ?? name(of: exchange)) == name(of: exchange)
            && (answer.clientID ?? own) == own
            && (answer.from ?? store.asked.named) == store.asked.named
    }

    /// The error for an answer to another request.
    package static let isOfAnother = SyncError(
        .offline,
        "The answer to another request came: something between this device and the server mixes"
            + " answers up. It is asked for again.")

    /// Doubles the number of bytes per exchange after an answer that arrived soon.
    func answeredSoon(now: Int64) {
        pullsFirst = false
        uploadFailures = 0
        guard now - asked <= options.quickExchange else { return }
        // After a set was too large, the device sends it once more, alone.
        if tooLarge == nil {
            uploadBytes = min(options.uploadBytes, max(uploadBytes, Self.leastBytes) * 2)
        }
        answerBytes = min(Limits.answerBytes, answerBytes * 2)
    }
}
