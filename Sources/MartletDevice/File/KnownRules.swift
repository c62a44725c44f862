internal import MartletModel
internal import MartletProtocol
internal import MartletRules

/// The rules that concern the device's user, as the server sent them last.
final class KnownRules {
    let fingerprint: String
    /// The rules; nil if they do not fit the tables that the file has.
    let program: RulesProgram?
    private let viewer: Viewer

    private init(_ rules: UserRules, _ schema: Schema) {
        fingerprint = rules.fingerprint
        program = try? RulesProgram(rules.text, schema: schema)
        viewer = Viewer(user: rules.user, roles: Set(rules.roles), claims: rules.claims)
    }

    /// Returns what judges rows for the user, on a day.
    /// - Parameter now: Milliseconds since 1970. The day is the one of UTC.
    func evaluator(_ program: RulesProgram, now: Int64) -> (RowLookups) -> RuleEvaluator {
        var viewer = viewer
        viewer.today = CalendarDay.days(milliseconds: now)
        return { RuleEvaluator(program, for: viewer, over: $0) }
    }

    /// The names of the states that have the fingerprint and the rules.
    private static let state = "rules"
    private static let textState = "rulesText"

    /// Returns the rules that a file has; nil if it has none.
    static func read(from store: LocalStore) throws -> KnownRules? {
        guard let fingerprint = try store.textState(state) else { return nil }
        if let known = store.rules, known.fingerprint == fingerprint { return known }
        // If something has damaged the text, the server alone judges.
        guard let text = try store.textState(textState),
            let rules = try? SyncCoder.decodeRules(Array(text.utf8))
        else { return nil }
        let known = KnownRules(rules, store.schema)
        store.rules = known
        return known
    }

    /// Stores the text of rules in a file, in the caller's transaction. The standing has the fingerprint.
    static func keep(_ rules: UserRules?, in store: LocalStore) throws {
        let text = rules.map { String(decoding: SyncCoder.encode($0), as: UTF8.self) }
        try store.setState(textState, text.map { .text($0) } ?? .null)
    }
}

@available(*, unavailable)
extension KnownRules: Sendable {}
