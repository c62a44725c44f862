import MartletModel
import MartletProtocol
import RandomKit
import SmallWorlds

@testable import Martlet

/// How the way to the server is for some hours, for each kind of request.
struct Spell {
    /// What becomes of exchanges.
    enum Exchanges {
        case well
        /// Nothing comes back, and no byte moves.
        case silent
        case refused
        /// The server does its work, and the answer does not come.
        case oneWay
        /// Another program answers.
        case page(status: Int, body: String, retryAfter: Int64?)
        /// The server says this, or something that repeats it.
        case said(Problem)
        /// Something between gives an answer of before, to this device or to another one.
        case repeated
        /// No message of more bytes gets through.
        case narrow(Int)
        /// So many bytes travel in a second.
        case slow(Int)
    }

    /// What becomes of streams.
    enum Streams {
        case well
        /// It opens, and nothing comes.
        case silent
        case refused
        case answered(Problem, retryAfter: Int64?)
        /// It ends as soon as it is there, perhaps within a batch.
        case short(isInBatch: Bool)
        /// Something between gives a stream of before.
        case repeated
        /// All comes so many milliseconds late.
        case late(Int64)
    }

    /// What becomes of downloads.
    enum Downloads {
        case well, cut
        /// The server lists a snapshot and does not have its files.
        case gone
        /// The server has no snapshot.
        case none
        case busy(retryAfter: Int64)
    }

    var exchanges = Exchanges.well
    var streams = Streams.well
    var downloads = Downloads.well
    /// Milliseconds between two saves on the device, at most; nil if nobody is there.
    var savePause: Int64?
    /// Milliseconds between two saves of others, at most; nil if nobody is there.
    var newsPause: Int64?
    /// Milliseconds.
    var length: Int64 = 3_600_000

    /// Whether the server's own words may stop the device.
    var mayStop: Bool {
        if case .said = exchanges { return true }
        if case .answered(let problem, _) = streams { return problem.isOfServer }
        return false
    }

    static func random(_ random: inout SplitMix64) -> Spell {
        var spell = Spell()
        // Any of the three kinds may go well while others do not.
        if random.below(3) > 0 { spell.exchanges = exchanges(&random) }
        if random.below(3) > 0 { spell.streams = streams(&random) }
        if random.below(2) > 0 {
            spell.downloads = random.pick([
                .cut, .gone, .none, .busy(retryAfter: random.pick([0, 30, 900])),
            ])
        }
        if case .late = spell.streams, random.below(2) == 0 {
            // Who holds a stream back lets all else pass.
            (spell.exchanges, spell.newsPause) = (.well, 60_000)
        }
        if case .silent = spell.streams, random.below(2) == 0 {
            // Polls alone bring what is new.
            (spell.exchanges, spell.newsPause) = (.well, 60_000)
        }
        if random.below(3) == 0 { spell.savePause = random.pick([20_000, 120_000, 900_000]) }
        if spell.newsPause == nil, random.below(2) == 0 {
            spell.newsPause = random.pick([60_000, 600_000])
        }
        spell.length = Int64(20 + random.below(160)) * 60_000
        return spell
    }

    private static func exchanges(_ random: inout SplitMix64) -> Exchanges {
        switch random.below(10) {
        case 0: .silent
        case 1: .refused
        case 2: .oneWay
        case 3, 4:
            .page(
                status: random.pick([
                    200, 200, 204, 302, 400, 401, 403, 404, 407, 409, 413, 429, 500, 502, 503, 511,
                    100 + random.below(500),
                ]),
                body: random.pick(pages),
                retryAfter: random.pick([nil, nil, 0, -1, 30, 3_600, 86_400, .max]))
        case 5, 6:
            .said(
                problem(
                    random.pick([
                        (401, "unauthorized"), (403, "clientBound"), (403, "wrongDataSet"),
                        (400, "malformed"), (409, "identityReused"), (409, "lineage"),
                        (409, "revisionAhead"), (503, "busy"), (503, "storage"),
                        (429, "tooManyConnections"), (500, "storage"), (409, "identityReused"),
                        (409, "lineage"), (409, "identityReused"),
                    ]), &random))
        case 7: .repeated
        case 8: .narrow(30_000 + random.below(80_000))
        default: .slow(random.pick([40, 300, 2_900]))
        }
    }

    private static func streams(_ random: inout SplitMix64) -> Streams {
        switch random.below(8) {
        case 0: .silent
        case 1: .refused
        case 2:
            .answered(
                .unrecognized(
                    status: random.pick([
                        200, 302, 400, 401, 403, 404, 405, 406, 409, 429, 501, 502, 503,
                    ])), retryAfter: random.pick([nil, 0, 3_600, 86_400]))
        case 3:
            .answered(
                problem(
                    random.pick([
                        (401, "unauthorized"), (403, "clientBound"), (409, "lineage"),
                        (409, "revisionAhead"), (503, "busy"), (429, "tooManyConnections"),
                        (404, "notFound"), (501, "notImplemented"),
                    ]), &random), retryAfter: random.pick([nil, 0, 60]))
        case 4: .short(isInBatch: random.below(2) == 0)
        case 5: .repeated
        default: .late(random.pick([8_000, 30_000, 300_000, 1_200_000, 3_000_000]))
        }
    }

    private static func problem(_ word: (Int, String), _ random: inout SplitMix64) -> Problem {
        Problem(
            status: word.0, kind: word.1, detail: "The server says why, and what to do.",
            retryAfter: random.pick([nil, nil, 5, 600]))
    }

    private static let pages = [
        "", "<!DOCTYPE html><html><body><form action=\"/login\">Your room?</form></body></html>",
        "{}", "[]", "null", "{\"error\":\"login required\"}", "{\"received\":7}",
        "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403}",
        "{\"kind\":\"quota\",\"detail\":\"Your plan has ended.\",\"status\":403}",
        "upstream connect error or disconnect/reset before headers",
    ]
}

extension SplitMix64 {
    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

    mutating func pick<Element>(_ list: [Element]) -> Element { list[below(list.count)] }
}
