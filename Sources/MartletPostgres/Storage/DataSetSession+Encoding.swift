import MartletModel
import MartletServerCore
import PostgresKit

/// Handles characters that the encoding of an older data set's database lacks (LATIN1, for
/// example). PostgreSQL refuses a statement with such a character, and most statements concern all
/// sets of a batch. So the store finds sets with such characters first, and refuses each alone.
extension DataSetSession {
    /// Whether there are characters that the database cannot store.
    var lacksCharacters: Bool { encoding != "UTF8" && encoding != "SQL_ASCII" }

    private static let savepoint = "martlet_characters"

    /// Finds out in one round trip which characters of the texts the database has.
    func lookUp(charactersOf texts: some Sequence<String>) throws(PostgresError) {
        guard lacksCharacters else { return }
        var new: Set<Unicode.Scalar> = []
        for scalar in texts.lazy.flatMap(\.unicodeScalars)
        where !scalar.isASCII && storable[scalar] == nil {
            new.insert(scalar)
        }
        guard !new.isEmpty else { return }
        let back = [PostgresStatement("ROLLBACK TO SAVEPOINT \(Self.savepoint)")]
        let asked = new.sorted()
        var segments = [[PostgresStatement("SAVEPOINT \(Self.savepoint)")]]
        for scalar in asked {
            segments.append([PostgresStatement("SELECT $1::text", [.text(String(scalar))])])
            segments.append(back)
        }
        segments.append([PostgresStatement("RELEASE SAVEPOINT \(Self.savepoint)")])
        let answers = try run(segments)
        for (index, scalar) in asked.enumerated() {
            switch answers[1 + 2 * index][0] {
            case .success: storable[scalar] = true
            case .failure(let error):
                // “Untranslatable character”, and “character not in repertoire”.
                guard error.sqlState == "22P05" || error.sqlState == "22021" else { throw error }
                storable[scalar] = false
            }
        }
        _ = try answers[segments.count - 1][0].get()
    }

    /// Returns whether the database can store a text whose characters have been looked up.
    func canHold(_ text: String) -> Bool {
        !lacksCharacters || text.unicodeScalars.allSatisfy { $0.isASCII || storable[$0] == true }
    }

    /// Returns why sets cannot be stored, by position. The store must then leave their texts out of
    /// its requests.
    func refusalsForCharacters(
        _ requests: [FactsRequest]
    ) throws(PostgresError) -> [Int: Refusal] {
        guard lacksCharacters else { return [:] }
        let texts = requests.map(\.texts)
        try lookUp(charactersOf: texts.joined())
        var refusals: [Int: Refusal] = [:]
        for (index, texts) in texts.enumerated() where !texts.allSatisfy(canHold) {
            refusals[index] = Refusal(
                .constraint,
                """
                the change holds characters that the database cannot keep: its encoding is \(encoding)
                """)
        }
        return refusals
    }

    /// Returns the request without the texts that the database cannot read.
    func askable(_ request: FactsRequest, _ refusal: Refusal?) -> FactsRequest {
        guard let refusal else { return request }
        return FactsRequest(
            device: request.device, principal: request.principal,
            identifier: request.identifier.flatMap { canHold($0) ? $0 : nil },
            sequence: request.sequence, dependency: nil, content: request.content,
            reading: .failure(refusal))
    }

    /// Stores a refusal, unless the database cannot store the set's identifier. Such a set is
    /// refused again when it is sent again.
    func remember(
        _ refusal: Refusal, of request: FactsRequest, now: Int64
    ) throws(PostgresError) {
        if let identifier = request.identifier, !canHold(identifier) { return }
        try lookUp(charactersOf: [refusal.message])
        let message = String(
            String.UnicodeScalarView(refusal.message.unicodeScalars.map { kept($0) }))
        pending.remember(
            Refusal(refusal.reason, message, retryAfter: refusal.retryAfter), of: request, now: now
        )
    }

    /// Returns a character of a message, or a replacement that keeps the message readable.
    private func kept(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        guard lacksCharacters, !scalar.isASCII, storable[scalar] != true else { return scalar }
        return scalar == "“" || scalar == "”" ? "\"" : "?"
    }
}

extension FactsRequest {
    /// All texts that the database would look for or store for the set.
    fileprivate var texts: [String] {
        var texts = [identifier, dependency].compactMap(\.self)
        guard let plan else { return texts }
        for change in plan.creates + plan.updates + plan.deletes {
            if case .text(let id) = change.id { texts.append(id) }
            for case .text(let text) in change.attributes.values { texts.append(text) }
        }
        return texts
    }
}
