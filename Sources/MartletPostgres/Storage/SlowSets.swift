import MartletModel
import MartletServerCore
import PostgresKit

/// The sets that took too long, or that ended the connection. This record keeps a device that sends
/// such a set again and again from delaying all other devices.
///
/// A cancelled set is not tried again for a minute. Other sets of its tables are tried, with less
/// and less time. If a device has several such sets, no set of it for their tables is tried. Other
/// programs may end a connection, too. So a set counts only if the connection ended twice while it
/// alone was under way.
struct SlowSets {
    private struct Cancelled {
        let device: Int64
        let identifier: String?
        let content: [UInt8]
        let types: Set<Int>
        /// The moment when the set may be tried again, in milliseconds since 1970.
        let until: Int64
    }

    /// A set that ended the connection, identified by its bytes, because the number of a new device
    /// is undone with its batch.
    private struct Ending {
        let content: [UInt8]
        /// The moment when the set may be tried again, in milliseconds since 1970.
        var until: Int64
    }

    private struct Limit {
        var milliseconds: Int64
        var until: Int64
    }

    /// The milliseconds for which the times of a table's statements are limited.
    private static let duration: Int64 = 600_000
    private static let limits: (first: Int64, least: Int64) = (1_000, 100)
    /// The number of a device's sets that may take too long before its other sets are not tried
    /// either.
    private static let mostOfDevice = 3
    private static let mostKept = 1_000
    /// The consecutive obstructed tries of a set after which the operator is told.
    static let mostInTheWay = 10

    private var cancelled: [Cancelled] = []
    private var types: [Int: Limit] = [:]
    private var endings: [Ending] = []
    /// The number of consecutive obstructions of sets, by their bytes.
    private var obstructions: [[UInt8]: Int] = [:]
    /// Whether each set runs alone because the connection ended while several were under way.
    private(set) var isCareful = false

    /// Returns whether a cancelled set took so long that the server's limit, or a person, may have
    /// ended it.
    func isLong(_ took: Duration, for work: SetWork) -> Bool {
        took >= .milliseconds(limit(of: work) ?? Self.limits.first)
    }

    /// Notes that a lock or another transaction, which may end in a moment, blocked a set.
    /// - Returns: Whether this has continued for so long that the operator should be told.
    mutating func noteObstruction(of work: SetWork) -> Bool {
        if obstructions.count >= Self.mostKept { obstructions.removeAll() }
        obstructions[work.request.content, default: 0] += 1
        return obstructions[work.request.content]?.isMultiple(of: Self.mostInTheWay) == true
    }

    /// Notes that a set was carried out.
    mutating func noteEndOfObstruction(of work: SetWork) {
        if !obstructions.isEmpty { obstructions[work.request.content] = nil }
    }

    /// Notes that the connection ended while these sets were under way.
    mutating func noteEnd(of works: [SetWork]) {
        isCareful = works.count > 1
        guard works.count == 1, let work = works.first else { return }
        endings.removeAll { $0.until + Self.duration <= work.now }
        let content = work.request.content
        guard let index = endings.firstIndex(where: { $0.content == content }) else {
            if endings.count >= Self.mostKept { endings.removeFirst() }
            endings.append(Ending(content: content, until: work.now))
            return
        }
        endings[index].until = work.now + DataSetSession.repairSeconds * 1_000
    }

    /// Returns the seconds for which a set must not be tried because it ended the connection; nil
    /// if it may be tried.
    func waitAfterEnd(of work: SetWork) -> Int64? {
        endings.first { $0.content == work.request.content && $0.until > work.now }
            .map { ($0.until - work.now + 999) / 1_000 }
    }

    /// Notes that a set was cancelled.
    mutating func note(_ work: SetWork, took: Duration) {
        let now = work.now + took.components.seconds * 1_000
        cancelled.removeAll { $0.until <= work.now }
        if cancelled.count >= Self.mostKept { cancelled.removeFirst() }
        cancelled.append(
            Cancelled(
                device: work.request.device, identifier: work.request.identifier,
                content: work.request.content, types: Set(work.plan.types),
                until: now + DataSetSession.repairSeconds * 1_000))
        for type in work.plan.types {
            if let held = types[type], held.until > work.now {
                // The limit's end is not postponed, so that a set that needs more time gets it in
                // the end.
                types[type]?.milliseconds = max(held.milliseconds / 2, Self.limits.least)
            } else {
                types[type] = Limit(milliseconds: Self.limits.first, until: now + Self.duration)
            }
        }
    }

    /// Returns the seconds for which a set must not be tried; nil if it may be tried.
    func wait(of work: SetWork) -> Int64? {
        guard !cancelled.isEmpty else { return nil }
        let request = work.request
        let own = cancelled.filter {
            $0.device == request.device && $0.until > work.now
                && !$0.types.isDisjoint(with: work.plan.types)
        }
        let same = own.last {
            $0.content == request.content
                || $0.identifier != nil && $0.identifier == request.identifier
        }
        let cause =
            same
            ?? (own.count >= Self.mostOfDevice ? own.last : nil)
        return cause.map { ($0.until - work.now + 999) / 1_000 }
    }

    /// Returns the milliseconds that each statement of a set may take; nil for the usual time.
    func limit(of work: SetWork) -> Int64? {
        guard !types.isEmpty else { return nil }
        return work.plan.types.compactMap { types[$0] }.filter { $0.until > work.now }
            .map(\.milliseconds).min()
    }
}
