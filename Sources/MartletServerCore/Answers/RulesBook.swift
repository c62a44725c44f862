internal import MartletModel
internal import MartletProtocol
internal import MartletRules
import Synchronization

/// Says which rules concern people, for their devices. Any thread may use it.
///
/// A `DataSetNode` updates it when its rules change.
final class RulesBook: Sendable {
    private struct State {
        var program: RulesProgram?
        /// The rights of roles to types, unless everyone may do everything.
        var roles: Rules?
        /// The fingerprints of the rules that concern people.
        var fingerprints: [Principal: String] = [:]
        /// The rules that were made last, of a few people.
        var recent: [Principal: UserRules] = [:]
        /// How often the rules were set.
        var generation = 0
    }

    /// The most people whose fingerprints are kept, and those whose rules are.
    private static let (mostPeople, mostRecent) = (65_536, 32)

    private let state = Mutex(State())
    private let schema: Schema

    init(_ schema: Schema) { self.schema = schema }

    /// Takes the rules of the data set.
    /// - Parameter program: The policies; nil if there are none.
    func set(_ program: RulesProgram?, _ roles: Rules) {
        let roles = roles == .everything ? nil : roles
        state.withLock {
            $0 = State(program: program, roles: roles, generation: $0.generation + 1)
        }
    }

    /// Returns the rules that concern a person, unless his device has them.
    /// - Parameter fingerprint: The fingerprint of those that the device has; nil if it has none.
    func rules(of principal: Principal, insteadOf fingerprint: String?) -> UserRules? {
        let (program, roles, generation, known, recent) = state.withLock {
            (
                $0.program, $0.roles, $0.generation, $0.fingerprints[principal],
                $0.recent[principal]
            )
        }
        guard program != nil || roles != nil else {
            return fingerprint == nil ? nil : UserRules.none
        }
        if let known, known == fingerprint { return nil }
        if let recent { return recent.fingerprint == fingerprint ? nil : recent }
        let rules =
            if let program { UserRules(program, of: principal) } else {
                UserRules(roles ?? .everything, of: principal, schema)
            }
        state.withLock { state in
            // Meanwhile the data set may have got other rules.
            guard state.generation == generation else { return }
            if state.fingerprints.count >= Self.mostPeople { state.fingerprints = [:] }
            if state.recent.count >= Self.mostRecent { state.recent = [:] }
            state.fingerprints[principal] = rules.fingerprint
            state.recent[principal] = rules
        }
        return rules.fingerprint == fingerprint ? nil : rules
    }
}
