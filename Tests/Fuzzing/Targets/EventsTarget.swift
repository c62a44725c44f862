@testable import Martlet

/// Server-sent events, as a device reads them. The first byte says how they are cut.
enum EventsTarget: FuzzTarget {
    static let name = "events"

    private static let limit = 256

    static func check(_ input: [UInt8]) throws {
        guard let seed = input.first else { return }
        let stream = input[1...]
        guard let whole = read([Array(stream)]) else {
            try hold(
                read(pieces(of: stream, seed: seed)) == nil,
                "a limit does not depend on how a stream is cut")
            return
        }
        let cut = read(pieces(of: stream, seed: seed))
        try hold(whole == cut, "events do not depend on how a stream is cut")
        for event in whole {
            try hold(event.data.count <= limit, "no event over the limit")
            try hold(!event.data.contains(13), "lines are parted by line feeds")
        }
        // Written plainly, they read back as the same.
        var plain: [UInt8] = []
        for event in whole {
            plain += [UInt8]("id: \(event.identifier)\nevent: \(event.name)\n".utf8)
            for line in event.data.split(separator: 10, omittingEmptySubsequences: false) {
                plain += [UInt8]("data: ".utf8) + line + [10]
            }
            plain.append(10)
        }
        try hold(read([plain], limit: 1 << 16) == whole, "events written again are the same")
    }

    private static func read(
        _ pieces: [[UInt8]], limit: Int = EventsTarget.limit
    ) -> [ServerSentEvents.Event]? {
        var events = ServerSentEvents(limit: limit)
        var found: [ServerSentEvents.Event] = []
        for piece in pieces {
            guard let some = try? events.read(piece) else { return nil }
            found += some
        }
        return found
    }
}
