import MartletModel
import MartletServerCore
import PostgresKit

/// Earlier verdicts on the sets of a batch, by identifier and by sequence number.
struct StoredVerdicts {
    /// A stored verdict.
    struct Stored {
        let device: Int64
        let content: [UInt8]
        let identifier: String?
        let verdict: DecidedSet.Verdict
        let principal: String?
    }

    private struct SetNumber: Hashable {
        let device: Int64
        let sequence: Int64
    }

    private var byIdentifier: [String: Stored] = [:]
    private var bySequence: [SetNumber: Stored] = [:]

    // MARK: - Statements

    private static let accepted = """
        SELECT l.device, coalesce(l.content, ''), l.identifier, l.sequence, l.revision, \
        NULL::text, NULL::text, \
        (SELECT d.principal FROM _martlet.devices AS d WHERE d.number = l.device)
        """
    private static let refused = """
        SELECT r.device, r.content, r.identifier, r.sequence, 0::bigint, r.reason, r.message, \
        (SELECT d.principal FROM _martlet.devices AS d WHERE d.number = r.device)
        """

    private static let identifiersSQL = """
        \(accepted) FROM _martlet.log AS l \
        WHERE l.identifier IS NOT NULL AND l.identifier = ANY ($1::text[]) \
        UNION ALL \(refused) FROM _martlet.refusals AS r \
        WHERE r.identifier IS NOT NULL AND r.identifier = ANY ($1::text[])
        """

    private static let sequencesSQL = """
        \(accepted) FROM unnest($1::bigint[], $2::bigint[]) AS q(device, sequence) \
        CROSS JOIN LATERAL (SELECT o.device, o.content, o.identifier, o.sequence, o.revision \
        FROM _martlet.log AS o WHERE o.device = q.device AND o.sequence = q.sequence \
        AND o.sequence IS NOT NULL AND o.device <> 0 LIMIT 1) AS l \
        UNION ALL \(refused) FROM unnest($1::bigint[], $2::bigint[]) AS q(device, sequence) \
        CROSS JOIN LATERAL (SELECT o.device, o.content, o.identifier, o.sequence, o.reason, \
        o.message FROM _martlet.refusals AS o WHERE o.device = q.device \
        AND o.sequence = q.sequence AND o.sequence IS NOT NULL LIMIT 1) AS r
        """

    /// Returns the two queries for all sets.
    static func statements(_ requests: [FactsRequest]) -> [PostgresStatement] {
        var identifiers: [String] = []
        var devices: [Int64] = []
        var sequences: [Int64] = []
        for request in requests {
            if let identifier = request.identifier { identifiers.append(identifier) }
            if let dependency = request.dependency { identifiers.append(dependency) }
            if request.device != 0, let sequence = request.sequence {
                devices.append(request.device)
                sequences.append(sequence)
            }
        }
        return [
            byIdentifier(identifiers),
            PostgresStatement(
                sequencesSQL, [PendingWrites.integers(devices), PendingWrites.integers(sequences)]),
        ]
    }

    static func byIdentifier(_ identifiers: [String]) -> PostgresStatement {
        PostgresStatement(identifiersSQL, [PendingWrites.texts(identifiers)])
    }

    // MARK: - Answers

    /// Adds the verdicts of an answer to one of `statements`.
    /// - Throws: `PostgresError` if they cannot be read.
    mutating func add(_ rows: PostgresRows) throws(PostgresError) {
        for row in 0..<rows.count { try add(rows, row) }
    }

    /// Adds a stored verdict. Acceptances precede refusals, and have priority if there are both.
    private mutating func add(_ rows: PostgresRows, _ row: Int) throws(PostgresError) {
        let identifier = rows.isNull(row, 2) ? nil : try rows.text(row, 2)
        let verdict: DecidedSet.Verdict =
            rows.isNull(row, 5)
            ? .accepted(try rows.integer(row, 4))
            : .refused(
                Refusal(RefusalReason(rawValue: try rows.text(row, 5)), try rows.text(row, 6)))
        let stored = Stored(
            device: try rows.integer(row, 0), content: try rows.binary(row, 1),
            identifier: identifier, verdict: verdict,
            principal: rows.isNull(row, 7) ? nil : try rows.text(row, 7))
        if let identifier, byIdentifier[identifier] == nil { byIdentifier[identifier] = stored }
        guard stored.device != 0, !rows.isNull(row, 3) else { return }
        let number = SetNumber(device: stored.device, sequence: try rows.integer(row, 3))
        if bySequence[number] == nil { bySequence[number] = stored }
    }

    subscript(identifier: String) -> Stored? {
        byIdentifier[identifier]
    }

    /// Returns the set to which the request's device gave the same number before.
    func used(by request: FactsRequest) -> UsedSequence? {
        numbered(as: request).map {
            UsedSequence(identifier: $0.identifier, content: $0.content)
        }
    }

    private func numbered(as request: FactsRequest) -> Stored? {
        guard request.device != 0, let sequence = request.sequence else { return nil }
        return bySequence[SetNumber(device: request.device, sequence: sequence)]
    }

    /// Returns the earlier verdict on the set; nil if the server must judge it.
    func decided(_ request: FactsRequest) -> DecidedSet? {
        let named = request.identifier.flatMap { self[$0] }
        guard let stored = named ?? numbered(as: request) else { return nil }
        if case .refused(let refusal) = stored.verdict, refusal.isOfTheSchema,
            request.plan != nil
        {
            // The schema has grown since. The server now judges the set for the first time.
            return nil
        }
        let isKnownDevice = stored.device == 0 || stored.device == request.device
        return DecidedSet(
            verdict: stored.verdict, isSameContent: stored.content == request.content,
            isSamePrincipal: isKnownDevice || stored.principal == request.principal.identity)
    }
}
