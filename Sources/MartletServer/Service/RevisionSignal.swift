internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization

/// Wakes the calls that wait for a data set's next revision.
///
/// One timer serves all waiting calls. It fires when the time of the first of them is up, and at
/// most once a second.
final class RevisionSignal: Sendable {
    private struct Waiter {
        let revision: Revision
        let deadline: ContinuousClock.Instant
        /// The person whose concerns alone wake the call; nil if every revision does.
        let person: Principal?
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var revision: Revision
        private(set) var waiters: [Int: Waiter] = [:]
        /// The numbers of the calls that every revision wakes, and of the others by person.
        private(set) var general: Set<Int> = []
        private(set) var numbers: [Principal: Set<Int>] = [:]
        var last = 0
        /// The time of the next look for calls whose time is up; nil if none waits.
        var look: ContinuousClock.Instant?
        var isStopped = false

        init(revision: Revision) { self.revision = revision }

        mutating func add(_ number: Int, _ waiter: Waiter) {
            waiters[number] = waiter
            if let person = waiter.person {
                numbers[person, default: []].insert(number)
            } else {
                general.insert(number)
            }
        }

        mutating func remove(_ number: Int) -> Waiter? {
            guard let waiter = waiters.removeValue(forKey: number) else { return nil }
            if let person = waiter.person {
                numbers[person]?.remove(number)
                if numbers[person]?.isEmpty == true { numbers[person] = nil }
            } else {
                general.remove(number)
            }
            return waiter
        }

        mutating func removeAll() -> [Waiter] {
            defer { (waiters, general, numbers) = ([:], [], [:]) }
            return Array(waiters.values)
        }
    }

    /// The shortest time between two looks.
    private static let pause = Duration.seconds(1)

    private let state: Mutex<State>

    init(_ revision: Revision) {
        state = Mutex(State(revision: revision))
    }

    /// The number of calls that wait now.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Notes that the data set has reached a revision, and wakes the calls that wait for it. Confined to
    /// one queue, together with `restart`.
    ///
    /// - Parameter concerned: Returns the people whom the revisions after one concern; nil for everyone.
    func advance(
        to revision: Revision, concerning concerned: (Revision) -> Set<Principal>? = { _ in nil }
    ) {
        let known = state.withLock { $0.revision }
        guard revision > known else { return }
        let people = concerned(known)
        let woken = state.withLock { state in
            state.revision = revision
            let numbers =
                people.map {
                    $0.reduce(into: state.general) { $0.formUnion(state.numbers[$1] ?? []) }
                }
                ?? Set(state.waiters.keys)
            return numbers.filter { state.waiters[$0].map { $0.revision < revision } ?? false }
                .compactMap { state.remove($0) }
        }
        for waiter in woken { waiter.continuation.resume(returning: true) }
    }

    /// Notes that another, shorter log has replaced the former one, and wakes all calls.
    func restart(at revision: Revision) {
        let woken = state.withLock { state in
            state.revision = revision
            return state.removeAll()
        }
        for waiter in woken { waiter.continuation.resume(returning: true) }
    }

    /// Waits until there is a revision after `revision`.
    ///
    /// - Parameter person: A person whose concerns alone count; nil if every revision does.
    /// - Returns: True if there is one. False after `duration` (to the second), if the waiting task
    ///   is cancelled, or if the server stops.
    func wait(
        beyond revision: Revision, for duration: Duration, concerning person: Principal? = nil
    ) async -> Bool {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = ContinuousClock.now
                let (answer, look) = state.withLock {
                    state -> (Bool?, ContinuousClock.Instant?) in
                    if state.revision > revision { return (true, nil) }
                    if state.isStopped || Task.isCancelled { return (false, nil) }
                    state.add(
                        number,
                        Waiter(
                            revision: revision, deadline: now + duration, person: person,
                            continuation: continuation))
                    let due = now + max(duration, Self.pause)
                    // The later look then finds that this one has replaced it.
                    guard state.look.map({ due < $0 }) ?? true else { return (nil, nil) }
                    state.look = due
                    return (nil, due)
                }
                if let answer { continuation.resume(returning: answer) }
                if let look { self.look(at: look) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.remove(number) }
            waiter?.continuation.resume(returning: false)
        }
    }

    /// True if all calls were released for good.
    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Releases all calls, and lets none wait from now on.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            return state.removeAll()
        }
        for waiter in waiters { waiter.continuation.resume(returning: false) }
    }

    /// Resumes the calls whose time is up, now and later, until none waits.
    private func look(at start: ContinuousClock.Instant) {
        Task {
            var due = start
            while true {
                guard (try? await Task.sleep(until: due, clock: .continuous)) != nil else { return }
                let now = ContinuousClock.now
                let (late, next) = state.withLock { [due] state in
                    guard state.look == due else {
                        return ([Waiter](), ContinuousClock.Instant?.none)
                    }
                    let late = state.waiters.filter { $0.value.deadline <= now }
                    for number in late.keys { _ = state.remove(number) }
                    state.look = state.waiters.values.map(\.deadline).min()
                        .map { max($0, now + Self.pause) }
                    return (Array(late.values), state.look)
                }
                for waiter in late { waiter.continuation.resume(returning: false) }
                guard let next else { return }
                due = next
            }
        }
    }
}
