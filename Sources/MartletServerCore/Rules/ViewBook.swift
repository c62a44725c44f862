internal import MartletModel
package import MartletRules
import Synchronization

/// Knows who sees what of a data set, as far as no storage has to be asked. Every answer of the server
/// is limited by it. Any thread may use it.
///
/// A `DataSetNode` updates it after each commit.
package final class ViewBook: Sendable {
    /// What a device may be answered without the writer.
    package enum Sight: Hashable, Sendable {
        /// Its user sees everything, and the device has the records of no other view.
        case everything
        case limited(ViewChange)
        /// The writer has to compute the view first.
        case unknown
    }

    private struct State {
        var program: RulesProgram?
        /// Whether people with these roles and claims see everything.
        var isWhole: [Principal: Bool] = [:]
        /// The views of people as the log's end left them when they were last computed.
        var views: [Principal: View] = [:]
        /// The views that the devices of people were given, by their identities.
        var given: [String: Set<Int64>] = [:]
    }

    /// The most people of whom something is kept.
    private static let mostPeople = 65_536

    private let state = Mutex(State())

    package init() {}

    /// The policies; nil if everyone sees everything.
    package var program: RulesProgram? {
        get { state.withLock { $0.program } }
        set { state.withLock { $0 = State(program: newValue) } }
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

    /// Returns what a device may be answered.
    ///
    /// - Parameters:
    ///   - since: The device's revision.
    ///   - held: The views that its lineage names; nil if it names no lineage.
    ///   - head: The end of the log.
    func sight(
        of principal: Principal, since: Revision, held: [Int64]?, head: Revision
    ) -> Sight {
        let isPlain = held ?? [] == []
        if isPlain, state.withLock({ $0.program == nil }) { return .everything }
        let showsEverything = showsEverything(to: principal)
        return state.withLock { state in
            let given = state.given[principal.identity] ?? []
            if isPlain, showsEverything {
                return given.contains(View.everything) ? .everything : .unknown
            }
            guard let view = state.views[principal], view.revision == head,
                // Nobody here knows the day.
                state.program?.asksDay != true,
                given.contains(view.number)
            else { return .unknown }
            let held = ViewBook.held(since: since, named: held, of: view.number)
            let change = ViewChange(held: held, view: view)
            return change.isMove ? .unknown : .limited(change)
        }
    }

    /// Returns the views whose records a device may have.
    ///
    /// - Parameters:
    ///   - named: The views that its lineage names; nil if it names no lineage. Such a program is
    ///     taken to have the view that its user has now.
    static func held(since: Revision, named: [Int64]?, of view: Int64) -> [Int64] {
        guard let named else { return since == 0 ? [] : [view] }
        guard let last = named.last else { return since == 0 ? [] : [View.everything] }
        guard last == view else { return named }
        return named.count == 1 ? named : Array(named.dropLast())
    }

    /// Notes the view of a person, which its devices were given.
    func note(_ view: View, of principal: Principal) {
        state.withLock { state in
            if state.views.count >= Self.mostPeople { state.views = [:] }
            if state.given.count >= Self.mostPeople { state.given = [:] }
            state.views[principal] = view
            state.given[principal.identity, default: []].insert(view.number)
        }
    }

    /// Returns whether the devices of a person are known to have been given a view.
    func wasGiven(_ view: Int64, to principal: Principal) -> Bool {
        state.withLock { $0.given[principal.identity]?.contains(view) == true }
    }

    /// Forgets all views, because a transaction that made some may have been rolled back.
    func forget() {
        state.withLock { $0 = State(program: $0.program, isWhole: $0.isWhole) }
    }
}
