package import MartletModel
package import MartletRules

/// Reads a data set at one moment for explanations. It changes nothing.
package protocol RecordSource {
    var schema: Schema { get }
    /// The end of the log.
    var revision: Revision { get }
    /// Returns rows; see `ServerStorage.rows`.
    func rows(of type: Int, where column: Int, isAmong values: [Value]?) throws -> [RuleRow]
    /// Returns what a type view lists of a record; nil if the view was never computed.
    ///
    /// - Parameter identity: The identity of a principal.
    func standing(
        of id: RecordID, in key: TypeViewKey, givenTo identity: String
    ) throws -> ViewStanding?
    /// Returns the parts of the view that each principal's devices were given last, in the schema's
    /// order, by the principal's identity.
    func givenViews() throws -> [String: [Int64]]
    /// Returns how many records a type view shows.
    func shownCount(of view: Int64) throws -> Int
}

/// The place of a record in a type view, as the storage lists it.
package struct ViewStanding: Hashable, Sendable {
    /// The number of the type view.
    package let number: Int64
    /// The revision up to which it was computed.
    package let revision: Revision
    /// Whether it shows the record, and since which revision; nil if it never showed it. The revision
    /// is 0 if it showed the record when it was computed for the first time.
    package let member: Member?
    /// Since when, and until when, the person's devices were given the view; nil if they were not.
    package let given: GivenView?

    package struct Member: Hashable, Sendable {
        package let isShown: Bool
        package let since: Revision

        package init(isShown: Bool, since: Revision) {
            (self.isShown, self.since) = (isShown, since)
        }
    }

    package init(number: Int64, revision: Revision, member: Member?, given: GivenView?) {
        self.number = number
        self.revision = revision
        self.member = member
        self.given = given
    }
}

/// Why a person may see a record of a data set, or may not.
package struct RecordExplanation: Hashable, Sendable {
    /// How the person's view of the type is listed.
    package enum Listing: Hashable, Sendable {
        /// The person sees all records of the type, and no table lists them.
        case whole
        /// The person sees no record of the type.
        case nothing
        /// Nobody with this view has asked for it yet.
        case uncomputed
        case listed(ViewStanding)
    }

    package let type: String
    package let id: RecordID
    package let person: Principal
    /// The revision of the data set for which this holds.
    package let revision: Revision
    /// The judgement of the policies; nil if there is no such record that devices can receive.
    package let judgement: RowJudgement?
    package let listing: Listing

    /// Explains one record. It reads this record and what the policies look up, and no other.
    ///
    /// - Parameters:
    ///   - type: The position of the type in the schema.
    ///   - policies: The policies, read against the schema of the source.
    ///   - now: Milliseconds since 1970.
    /// - Throws: What the source throws.
    package init(
        of id: RecordID, type: Int, for person: Principal, by policies: RulesProgram, now: Int64,
        in source: some RecordSource
    ) throws {
        self.type = source.schema.types[type].name
        self.id = id
        self.person = person
        revision = source.revision
        let rights = RowRights(policies, of: person, now: now)
        let rows = try source.rows(of: type, where: 0, isAmong: [id.value])
        let evaluator = rights.evaluator(over: RowLookups(source.rows(of:where:isAmong:)))
        judgement = try rows.first { RecordAddress(type, $0).id == id }
            .map { try evaluator.judgement(of: $0, type: type) }
        switch rights.extents()[type] {
        case .whole: listing = .whole
        case .nothing: listing = .nothing
        case .judged(let key):
            listing =
                try source.standing(of: id, in: key, givenTo: person.identity)
                .map { .listed($0) } ?? .uncomputed
        }
    }
}

extension RecordExplanation {
    /// The explanation in sentences.
    package var sentences: [String] {
        let (record, name) = ("\(type) \(id)", person.user ?? "a person without a user")
        var sentences: [String] = []
        switch judgement {
        case nil:
            sentences.append("\(record) is not there, or no device can be sent it.")
        case let judgement?:
            sentences.append(
                "\(record) is \(judgement.isShown ? "shown to" : "hidden from") \(name).")
            sentences += judgement.reasons.map { "- \($0)" }
        }
        return sentences + listed(name)
    }

    private func listed(_ name: String) -> [String] {
        switch listing {
        case .whole: return ["\(name) sees all of \(type), so no view lists it."]
        case .nothing: return ["\(name) sees nothing of \(type), so no view lists it."]
        case .uncomputed:
            return ["No view with these rules, roles and claims was computed yet."]
        case .listed(let view):
            var sentences = [Self.sentence(view.member)]
            if view.revision < revision {
                sentences.append(
                    """
                    The view was computed up to revision \(view.revision); the log ends at \(revision).
                    """)
            }
            sentences.append(
                view.given.map {
                    "Devices of \(name) were given this view from revision \($0.first) on."
                } ?? "No device of \(name) was given this view yet.")
            return sentences
        }
    }

    private static func sentence(_ member: ViewStanding.Member?) -> String {
        guard let member else { return "The view never listed it." }
        guard member.since > 0 else {
            return "The view listed it when it was computed for the first time."
        }
        let verb = member.isShown ? "shows" : "hides"
        return "The view \(verb) it since revision \(member.since)."
    }
}
