/// Limits the requests and bytes that the server holds at a time, in total and for each party.
///
/// One party gets only a part of the total, so that no party can fill it alone. A body counts with
/// the bytes that have arrived, never with the length in its head.
struct RequestRoom {
    /// A party that has its own share.
    enum Party: Hashable {
        case address(String)
        /// A name that the server's gate has given.
        case named(String)
    }

    struct Usage: Hashable {
        var requests = 0
        var bytes = 0

        /// Returns whether `more` fits within `limit`.
        func hasRoom(for more: Usage, within limit: Usage) -> Bool {
            requests + more.requests <= limit.requests && bytes + more.bytes <= limit.bytes
        }

        static func += (left: inout Usage, right: Usage) {
            left.requests += right.requests
            left.bytes += right.bytes
        }

        static func -= (left: inout Usage, right: Usage) {
            left.requests -= right.requests
            left.bytes -= right.bytes
        }
    }

    private let limit: Usage
    private let share: Usage
    private(set) var total = Usage()
    private var parties: [Party: Usage] = [:]

    init(_ options: HTTPServerOptions) {
        limit = Usage(
            requests: options.maxRequestsInFlight, bytes: options.maxBodyBytesInFlight)
        // A single body within its limit always fits into a share.
        share = Usage(
            requests: max(1, limit.requests / 2), bytes: max(limit.bytes / 4, options.maxBodyBytes))
    }

    /// The number of parties that hold some of the room.
    var partyCount: Int { parties.count }

    /// Returns the reason why `more` does not fit; nil if it fits.
    /// - Parameter isCounted: Whether the total includes it already.
    func unreadyReason(for more: Usage, of parties: [Party], isCounted: Bool = false) -> String? {
        guard isCounted || total.hasRoom(for: more, within: limit) else {
            return "The server has too much to do; come back."
        }
        for party in parties
        where !self.parties[party, default: Usage()].hasRoom(for: more, within: share) {
            return "You have too many requests under way; come back."
        }
        return nil
    }

    mutating func take(_ usage: Usage, for parties: [Party]) {
        total += usage
        for party in parties { self.parties[party, default: Usage()] += usage }
    }

    /// Counts usage that the total already includes towards a party's share.
    mutating func share(_ usage: Usage, with party: Party) {
        parties[party, default: Usage()] += usage
    }

    mutating func giveBack(_ usage: Usage, of parties: [Party]) {
        total -= usage
        for party in parties {
            guard var held = self.parties[party] else { continue }
            held -= usage
            self.parties[party] = held == Usage() ? nil : held
        }
    }
}

/// The share of the room that one request, or one WebSocket, holds.
struct RequestClaim {
    var parties: [RequestRoom.Party]
    var usage = RequestRoom.Usage()
}
