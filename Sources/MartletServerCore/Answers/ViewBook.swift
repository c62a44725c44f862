package import MartletModel
package import MartletRules
import Synchronization

/// Says what people see of a data set, as far as no storage has to be asked. Every answer of the server
/// is limited by it. Any thread may use it.
///
/// A `DataSetNode` updates it after each commit.
package final class ViewBook: Sendable {
    /// The limits of an answer that is made without the writer.
    package enum Sight: Hashable, Sendable {
        /// Its user sees everything, and the device has the records of no other view.
        case everything
        case limited(ViewChange)
        /// The writer has to compute the view first.
        case unknown
    }

    private struct State {
        let program: RulesProgram?
        /// Whether policies ask for the day, which nobody here knows.
        let asksDay: Bool
        /// Whether people with these roles and claims see everything.
        var isWhole: [Principal: Bool] = [:]
        /// The views of people as the log's end left them when they were last computed.
        var views: [Principal: ViewChange] = [:]
        /// The last revisions that concerned the people for whom this is known, and the end of the log
        /// up to which it is.
        var concerning: [Principal: Revision] = [:]
        var end: Revision = 0
        /// The people whom the newest revisions concern, in the revisions' order.
        var recent: [Concern] = []

        /// Returns whether no revision after `revision` concerns a person.
        func isCurrent(_ principal: Principal, since revision: Revision, head: Revision) -> Bool {
            guard end >= head, let last = concerning[principal], !asksDay else { return false }
            return last <= revision
        }

        init(_ program: RulesProgram? = nil) {
            self.program = program
            asksDay = program?.asksDay ?? false
        }
    }

    /// The people whom some revisions concern; nil if nobody knows.
    private struct Concern {
        let after: Revision
        let through: Revision
        let people: Set<Principal>?
    }

    /// The most concerns that are kept.
    private static let mostRecent = 256

    /// The most people whose views are kept.
    private static let mostPeople = 65_536

    private let state = Mutex(State())

    package init() {}

    /// The policies; nil if everyone sees everything.
    package var program: RulesProgram? {
        get { state.withLock { $0.program } }
        set { state.withLock { $0 = State(newValue) } }
    }

    /// Returns whether a person sees every record of every type.
    package func showsEverything(to principal: Principal) -> Bool {
        state.withLock { state in
            guard let program = state.program else { return true }
            if let known = state.isWhole[principal] { return known }
            // Everything is as on any other day for those who see everything.
            let isWhole = RowRights(program, of: principal, now: 0).showsEverything
            if state.isWhole.count >= Self.mostPeople { state.isWhole = [:] }
            state.isWhole[principal] = isWhole
            return isWhole
        }
    }

    /// Returns the limits of an answer to a device.
    ///
    /// - Parameters:
    ///   - since: The device's revision.
    ///   - goal: The revision before which the answer may not end.
    ///   - lineage: The lineage that it names.
    ///   - head: The end of the log.
    func sight(
        of principal: Principal, since: Revision, goal: Revision = 0, _ lineage: DeviceLineage?,
        head: Revision
    ) -> Sight {
        let isPlain = lineage?.views.isEmpty ?? true
        if isPlain, state.withLock({ $0.program == nil }) { return .everything }
        let showsEverything = showsEverything(to: principal)
        return state.withLock { state in
            if isPlain, showsEverything { return .everything }
            guard let known = state.views[principal],
                max(since, goal) <= known.view.revision,
                known.view.revision == head
                    || state.isCurrent(principal, since: known.view.revision, head: head),
                !state.asksDay
            else { return .unknown }
            let held = ViewBook.held(since: since, lineage, of: known.view.number)
            let change = ViewChange(
                held: held, view: known.view, given: known.given, last: known.last)
            return change.isMove ? .unknown : .limited(change)
        }
    }

    /// Returns the views whose records a device may have.
    ///
    /// - Parameter lineage: The lineage that it names. A program that names none is taken to have the
    ///   view that its user has now.
    static func held(
        since: Revision, _ lineage: DeviceLineage?, of view: Int64
    ) -> [Int64] {
        guard let named = lineage?.views else { return since == 0 ? [] : [view] }
        guard let last = named.last else {
            return since == 0 && lineage?.isUnfinished == false ? [] : [View.everything]
        }
        guard last == view else { return named }
        return named.count == 1 ? named : Array(named.dropLast())
    }

    /// Returns whether a person has a view, and no revision after that of the answer concerns him.
    func shows(_ answered: AnsweredView, to principal: Principal, head: Revision) -> Bool {
        state.withLock { state in
            state.views[principal]?.view.number == answered.number
                && state.isCurrent(principal, since: answered.revision, head: head)
        }
    }

    /// Notes the view of a person, which its devices were given.
    ///
    /// - Parameter isTracked: Whether each later commit notes whether it concerns the person.
    func note(_ change: ViewChange, of principal: Principal, isTracked: Bool) {
        state.withLock { state in
            if state.views.count >= Self.mostPeople { (state.views, state.concerning) = ([:], [:]) }
            state.views[principal] = change
            if !isTracked {
                state.concerning[principal] = nil
            } else if state.concerning[principal] == nil {
                state.concerning[principal] = change.view.revision
            }
        }
    }

    /// The numbers of the views from which answers are limited without the writer.
    var numbers: Set<Int64> { state.withLock { Set($0.views.values.map(\.view.number)) } }

    // MARK: - Changes

    /// Notes whom the revisions of a commit concern.
    ///
    /// - Parameter people: Nil if nobody knows.
    func note(concerned people: Set<Principal>?, after: Revision, through: Revision) {
        state.withLock { state in
            state.end = through
            if let people {
                for person in people where state.concerning[person] != nil {
                    state.concerning[person] = through
                }
            } else {
                state.concerning = [:]
            }
            guard people == nil || through > after else { return }
            if state.recent.count >= Self.mostRecent { state.recent.removeFirst() }
            state.recent.append(Concern(after: after, through: through, people: people))
        }
    }

    /// Returns whether a revision after `since` may concern a person who sees a part.
    package func mayConcern(_ principal: Principal, since: Revision, head: Revision) -> Bool {
        state.withLock { !$0.isCurrent(principal, since: since, head: head) }
    }

    /// Returns whether each commit notes whether it concerns a person.
    func isTracked(_ principal: Principal) -> Bool {
        state.withLock { $0.concerning[principal] != nil && !$0.asksDay }
    }

    /// Returns the people who see a part and whom some revisions concern; nil if nobody knows. If it is not
    /// known any more for somebody for whom it was, nobody knows.
    package func concerned(after: Revision, through: Revision) -> Set<Principal>? {
        state.withLock { state in
            guard state.program != nil else { return nil }
            var reached = after
            var concerned: Set<Principal> = []
            for concern in state.recent
            where concern.through > after || concern.through == after && concern.people == nil {
                guard concern.after <= reached, let people = concern.people else { return nil }
                concerned.formUnion(people)
                reached = max(reached, concern.through)
            }
            return reached >= through ? concerned : nil
        }
    }

    /// Forgets all views, because a transaction that made some may have been rolled back.
    func forget() {
        state.withLock { state in
            let isWhole = state.isWhole
            state = State(state.program)
            state.isWhole = isWhole
        }
    }
}
