import MartletCore
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Sets whose statements failed for reasons of the server's: a right that is missing, a trigger that
/// names what is not there. The first time such a set fails its batch, so that the fault is seen;
/// the next time it is refused alone, so that it does not stand in the way of all others.
final class UnbearableSets {
    private var refusals: [[UInt8]: Refusal] = [:]
    /// Those that were refused since a batch was committed.
    private var refused: Set<[UInt8]> = []
    private static let most = 10_000

    func add(_ content: [UInt8], _ refusal: Refusal) {
        if refusals.count >= Self.most { refusals.removeAll() }
        refusals[content] = refusal
    }

    func contains(_ content: [UInt8]) -> Bool { refusals[content] != nil }

    /// A set's refusal. It holds until a batch is committed that it was part of, so that of several such
    /// sets each is found, and not the first tried again when the next fails.
    func refusal(_ content: [UInt8]) -> Refusal? {
        guard let refusal = refusals[content] else { return nil }
        refused.insert(content)
        return refusal
    }

    /// A batch was committed: the sets that were refused with it are tried again the next time.
    func committed() {
        for content in refused { refusals[content] = nil }
        refused = []
    }
}

@available(*, unavailable)
extension UnbearableSets: Sendable {}

extension StoreSession {
    /// Seconds after which a set is sent again that met a lock.
    static let retrySeconds: Int64 = 1
    /// Seconds after which a set is sent again that met a fault of the server's.
    static let repairSeconds: Int64 = 60

    /// The words for a set that was not carried out.
    /// - Throws: What is not the set's fault.
    func refusal(for failure: SetFailure, _ work: SetWork) throws(PostgresError) -> Refusal {
        let error: PostgresError
        switch failure {
        case .refused(let refusal): return refusal
        case .failed(let cause): error = cause
        }
        switch SetError(error) {
        case .fault: throw error
        case .passing:
            return Refusal(
                .busy, "another program holds what the change needs; send it again",
                retryAfter: Self.retrySeconds)
        case .ofTheServer:
            unbearable.add(
                work.question.content,
                Refusal(
                    .busy, "the database cannot carry out the change now: \(error.wordsForDevices)",
                    retryAfter: Self.repairSeconds))
            throw error
        case .ofTheSet: break
        }
        if error.isUnsendable, !error.message.hasPrefix("a trigger") {
            return Refusal(
                .constraint,
                "the database stored a value no device can be sent: \(error.message)")
        }
        if error.isForeignKeyViolation, let words = referenceWords(error, work) {
            return Refusal(.constraint, words)
        }
        if error.sqlState?.hasPrefix("P0") == true {
            // The sentence is the schema's own.
            return Refusal(.constraint, "the database refused: \(error.message)")
        }
        return Refusal(
            .constraint, "the database refused the change: \(error.wordsForDevices)")
    }

    /// The words for a foreign key of one column between types; nil for any other.
    private func referenceWords(_ error: PostgresError, _ work: SetWork) -> String? {
        guard let table = error.table, let constraint = error.constraint,
            let column = model.referenceColumns[.init(table: table, constraint: constraint)],
            let reference = schema.types[column.type].reference(of: column.attribute),
            let parent = schema.index(of: reference.target)
        else { return nil }
        // The server names the same constraint for both ends; only its words, which may be in any
        // language, tell which. A set that writes no such reference can only have deleted.
        let writes = (work.plan.creates + work.plan.updates).contains {
            $0.type == column.type && $0.attributes[column.attribute].map { $0 != .null } == true
        }
        let holder = "\(schema.types[column.type].name).\(column.attribute)"
        let deletes =
            work.plan.deletes.contains { $0.type == parent }
            || work.facts.affected.contains { $0.address.type == parent && $0.effect == .removed }
        if deletes, !writes || error.message.hasPrefix("update or delete") {
            return """
                a record of “\(reference.target)” cannot be deleted: records still refer to it in \
                “\(holder)”
                """
        }
        return """
            “\(holder)” refers to a record of “\(reference.target)” that does not exist
            """
    }

    /// Whether records have keys that were drawn for new ones.
    func areTaken(_ assigned: [RecordAddress: RecordID]) throws(PostgresError) -> Bool {
        var ids: [Int: [RecordID]] = [:]
        for (address, id) in assigned { ids[address.type, default: []].append(id) }
        guard !ids.isEmpty else { return false }
        let statements = ids.sorted { $0.key < $1.key }.map { type, ids in
            let form = model.forms[type]
            return PostgresStatement(
                """
                SELECT EXISTS (SELECT FROM \(form.table.sqlName) AS t \
                WHERE t.\(form.key) = ANY ($1::\(form.keyType)))
                """, [form.keys(ids)])
        }
        for rows in try run(statements) {
            if try rows.boolean(0, 0) { return true }
        }
        return false
    }
}
