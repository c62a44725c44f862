internal import MartletProtocol

@testable import Martlet

/// What a device may ask for in an hour of a spell, by the kind of request.
struct Budget {
    enum Kind: String, CaseIterable {
        case exchange, stream, download
    }

    /// The tries of the first hour of trouble: eleven until the wait is a quarter of an hour, and then one
    /// every five minutes at least.
    private static let tries = 30
    private static let hour: Int64 = 3_600_000

    private var asked: [Kind: [Int64]] = [:]
    /// When something happened for which the device may ask: a save, news, a part that came, a request of
    /// the spell before.
    private var reasons: [(time: Int64, kind: Kind, worth: Int)] = []

    /// Notes a reason to ask.
    mutating func allow(_ kind: Kind, _ worth: Int, now: Int64) {
        reasons.append((now, kind, worth))
    }

    /// Begins a spell: what was asked for before does not count any more.
    mutating func begin() {
        asked = [:]
        reasons = []
    }

    /// Notes a request.
    /// - Parameters:
    ///   - spell: What the way is like.
    ///   - pollInterval: Milliseconds between two polls; nil for none.
    /// - Returns: What is wrong if there were too many in the last hour.
    mutating func ask(
        _ kind: Kind, in spell: Spell, pollInterval: Int64?, now: Int64
    ) -> String? {
        asked[kind, default: []].append(now)
        asked[kind]?.removeAll { $0 <= now - Self.hour }
        reasons.removeAll { $0.time <= now - Self.hour }
        var most = reasons.filter { $0.kind == kind }.reduce(Self.tries) { $0 + $1.worth }
        switch kind {
        case .exchange:
            // A stream that does not come about may want an exchange.
            most += asked[.stream]?.count ?? 0
            if let pollInterval { most += Int(Self.hour / pollInterval) }
            switch spell.exchanges {
            // What is too much for the line is found out by halves, again and again.
            case .narrow: most += Self.tries
            // Each try starts over once, which is a request more.
            case .said(let problem) where problem.kind == "identityReused": most += Self.tries
            // The device looks for what its history and the server's have in common, by halves: six times
            // as many requests were seen in two thousand worlds.
            case .said(let problem) where problem.status == 409: most *= 8
            // After an answer that gets through, the waits are short again.
            case .repeated: most *= 2
            default: break
            }
        case .stream:
            // What a server does not have is asked for one time in ten minutes.
            if case .answered(let problem, _) = spell.streams,
                [400, 404, 405, 406, 501].contains(problem.status)
            {
                most -= Self.tries - 10
            }
        // What is gone is asked for twice, by the old list and by the new one.
        case .download: most += Self.tries
        }
        let count = asked[kind]?.count ?? 0
        guard count > most else { return nil }
        return "\(count) requests of the kind \(kind) in an hour, \(most) are allowed"
    }
}
