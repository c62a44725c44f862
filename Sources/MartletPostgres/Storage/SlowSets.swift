import MartletModel
import MartletServerCore
import PostgresKit

/// The sets that took too long, or that ended the connection. A device that sends one again and again cannot
/// hold up all others.
///
/// A set that was cancelled is not tried again for a minute. Other sets of its tables are tried, with less
/// and less time. A device with several such sets is not tried with any set of their tables. Somebody else may
/// end a connection, too, so a set counts that was alone under way twice.
struct SlowSets {
    private struct Cancelled {
        let device: Int64
        let identifier: String?
        let content: [UInt8]
        let types: Set<Int>
        /// In milliseconds since 1970.
        let until: Int64
    }

    /// A set is known by its bytes: the number of a new device is undone with its batch.
    private struct Ending {
        let content: [UInt8]
        /// When it may be tried again, in milliseconds since 1970.
        var until: Int64
    }

    private struct Limit {
        var milliseconds: Int64
        var until: Int64
    }

    /// Milliseconds for which the times of a table's statements are limited.
    private static let duration: Int64 = 600_000
    private static let limits: (first: Int64, least: Int64) = (1_000, 100)
    /// The sets of a device that may take too long, before others of its sets are not tried either.
    private static let mostOfDevice = 3
    private static let mostKept = 1_000
    /// Tries of a set in a row that meet an obstruction, before the operator is told.
    static let mostInTheWay = 10

    private var cancelled: [Cancelled] = []
    private var types: [Int: Limit] = [:]
    private var endings: [Ending] = []
    /// How often something was in the way of sets, by their bytes, in a row.
    private var obstructions: [[UInt8]: Int] = [:]
    /// Whether sets are to go alone: the connection ended while several were under way.
    private(set) var isCareful = false

    /// Whether a cancelled set took so long that the server's limit, or a person, may have ended it.
    func isLong(_ took: Duration, for work: SetWork) -> Bool {
        took >= .milliseconds(limit(of: work) ?? Self.limits.first)
    }

    /// Notes that something was in a set's way that may be gone in a moment: a lock, or another transaction.
    /// - Returns: Whether that goes on for so long that the operator is to be told.
    mutating func noteObstruction(of work: SetWork) -> Bool {
        if obstructions.count >= Self.mostKept { obstructions.removeAll() }
        obstructions[work.question.content, default: 0] += 1
        return obstructions[work.question.content]?.isMultiple(of: Self.mostInTheWay) == true
    }

    /// Notes that a set was carried out.
    mutating func noteEndOfObstruction(of work: SetWork) {
        if !obstructions.isEmpty { obstructions[work.question.content] = nil }
    }

    /// Notes that the connection ended while these sets were under way.
    mutating func noteEnd(of works: [SetWork]) {
        isCareful = works.count > 1
        guard works.count == 1, let work = works.first else { return }
        endings.removeAll { $0.until + Self.duration <= work.now }
        let content = work.question.content
        guard let place = endings.firstIndex(where: { $0.content == content }) else {
            if endings.count >= Self.mostKept { endings.removeFirst() }
            endings.append(Ending(content: content, until: work.now))
            return
        }
        endings[place].until = work.now + StoreSession.repairSeconds * 1_000
    }

    /// The seconds for which a set is not to be tried because it ended the connection; nil if it is to be.
    func waitAfterEnd(of work: SetWork) -> Int64? {
        endings.first { $0.content == work.question.content && $0.until > work.now }
            .map { ($0.until - work.now + 999) / 1_000 }
    }

    /// Notes that a set was cancelled.
    mutating func note(_ work: SetWork, took: Duration) {
        let now = work.now + took.components.seconds * 1_000
        cancelled.removeAll { $0.until <= work.now }
        if cancelled.count >= Self.mostKept { cancelled.removeFirst() }
        cancelled.append(
            Cancelled(
                device: work.question.device, identifier: work.question.identifier,
                content: work.question.content, types: Set(work.plan.types),
                until: now + StoreSession.repairSeconds * 1_000))
        for type in work.plan.types {
            if let held = types[type], held.until > work.now {
                // The time of the limit is not prolonged: a set that needs more gets it in the end.
                types[type]?.milliseconds = max(held.milliseconds / 2, Self.limits.least)
            } else {
                types[type] = Limit(milliseconds: Self.limits.first, until: now + Self.duration)
            }
        }
    }

    /// The seconds for which a set is not to be tried; nil if it is to be.
    func wait(of work: SetWork) -> Int64? {
        guard !cancelled.isEmpty else { return nil }
        let question = work.question
        let own = cancelled.filter {
            $0.device == question.device && $0.until > work.now
                && !$0.types.isDisjoint(with: work.plan.types)
        }
        let same = own.last {
            $0.content == question.content
                || $0.identifier != nil && $0.identifier == question.identifier
        }
        let cause =
            same
            ?? (own.count >= Self.mostOfDevice ? own.last : nil)
        return cause.map { ($0.until - work.now + 999) / 1_000 }
    }

    /// The milliseconds that each statement of a set may take; nil for the usual time.
    func limit(of work: SetWork) -> Int64? {
        guard !types.isEmpty else { return nil }
        return work.plan.types.compactMap { types[$0] }.filter { $0.until > work.now }
            .map(\.milliseconds).min()
    }
}
