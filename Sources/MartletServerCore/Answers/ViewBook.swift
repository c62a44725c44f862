internal import MartletModel
internal import MartletProtocol
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
        var program: RulesProgram?
        /// The rights of roles to types, unless everyone may do everything.
        var roles: Rules?
        /// The fingerprints of the rules that concern people.
        var fingerprints: [Principal: String] = [:]
        /// Whether people with these roles and claims see everything.
        var isWhole: [Principal: Bool] = [:]
        /// The views of people as the log's end left them when they were last computed.
        var views: [Principal: ViewChange] = [:]
    }

    /// The most people whose views are kept.
    private static let mostPeople = 65_536

    private let state = Mutex(State())

    private let schema: Schema

    init(_ schema: Schema) { self.schema = schema }

    /// The policies; nil if everyone sees everything.
    package var program: RulesProgram? {
        get { state.withLock { $0.program } }
        set { state.withLock { $0 = State(program: newValue, roles: $0.roles) } }
    }

    /// The rights of roles to types.
    var roles: Rules {
        get { state.withLock { $0.roles ?? .everything } }
        set {
            let roles = newValue == .everything ? nil : newValue
            state.withLock { $0 = State(program: $0.program, roles: roles) }
        }
    }

    /// Returns the rules that concern a person, unless his device has them.
    /// - Parameters:
    ///   - fingerprint: The fingerprint of those that the device has; nil if it has none.
    func rules(
        of principal: Principal, insteadOf fingerprint: String?
    ) -> UserRules? {
        let (program, roles, known) = state.withLock {
            ($0.program, $0.roles, $0.fingerprints[principal])
        }
        guard program != nil || roles != nil else {
            return fingerprint == nil ? nil : UserRules.none
        }
        if let known, known == fingerprint { return nil }
        let rules =
            if let program { UserRules(program, of: principal) } else {
                UserRules(roles ?? .everything, of: principal, schema)
            }
        state.withLock { state in
            if state.fingerprints.count >= Self.mostPeople { state.fingerprints = [:] }
            state.fingerprints[principal] = rules.fingerprint
        }
        return rules.fingerprint == fingerprint ? nil : rules
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
    ///   - lineage: The lineage that it names.
    ///   - head: The end of the log.
    func sight(
        of principal: Principal, since: Revision, _ lineage: DeviceLineage?, head: Revision
    ) -> Sight {
        let isPlain = lineage?.views.isEmpty ?? true
        if isPlain, state.withLock({ $0.program == nil }) { return .everything }
        let showsEverything = showsEverything(to: principal)
        return state.withLock { state in
            if isPlain, showsEverything { return .everything }
            guard let known = state.views[principal], known.view.revision == head,
                // Nobody here knows the day.
                state.program?.asksDay != true
            else { return .unknown }
            let held = ViewBook.held(since: since, lineage, of: known.view.number)
            let change = ViewChange(held: held, view: known.view, given: known.given)
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

    /// Notes the view of a person, which its devices were given.
    func note(_ change: ViewChange, of principal: Principal) {
        state.withLock { state in
            if state.views.count >= Self.mostPeople { state.views = [:] }
            state.views[principal] = change
        }
    }

    /// Forgets all views, because a transaction that made some may have been rolled back.
    func forget() {
        state.withLock { $0.views = [:] }
    }
}
