import MartletModel
import MartletServerCore
import PostgresKit

/// Characters that the encoding of an older data set's database lacks (LATIN1, say). PostgreSQL refuses a
/// statement that names one, and most statements are about all sets of a batch: so sets that hold such
/// characters are found first, and each is refused alone.
extension StoreSession {
    /// Whether there are characters that the database cannot hold.
    var lacksCharacters: Bool { encoding != "UTF8" && encoding != "SQL_ASCII" }

    private static let savepoint = "martlet_characters"

    /// Finds out of all characters of the texts whether the database has them, in one round trip.
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

    /// Whether the database can hold a text whose characters have been looked up.
    func canHold(_ text: String) -> Bool {
        !lacksCharacters || text.unicodeScalars.allSatisfy { $0.isASCII || storable[$0] == true }
    }

    /// Why sets cannot be held, by position; their questions are to be asked without their texts.
    func refusalsForCharacters(
        _ questions: [FactsRequest]
    ) throws(PostgresError) -> [Int: Refusal] {
        guard lacksCharacters else { return [:] }
        let texts = questions.map(\.texts)
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

    /// The question without what the database cannot be asked about.
    func askable(_ question: FactsRequest, _ refusal: Refusal?) -> FactsRequest {
        guard let refusal else { return question }
        return FactsRequest(
            device: question.device, principal: question.principal,
            identifier: question.identifier.flatMap { canHold($0) ? $0 : nil },
            sequence: question.sequence, dependency: nil, content: question.content,
            reading: .failure(refusal))
    }

    /// Keeps a refusal, unless the set's name is one that the database cannot keep: it is then refused
    /// again when it is sent again.
    func remember(
        _ refusal: Refusal, of question: FactsRequest, now: Int64
    ) throws(PostgresError) {
        if let identifier = question.identifier, !canHold(identifier) { return }
        try lookUp(charactersOf: [refusal.message])
        let message = String(
            String.UnicodeScalarView(refusal.message.unicodeScalars.map { kept($0) }))
        pending.remember(
            Refusal(refusal.reason, message, retryAfter: refusal.retryAfter), of: question, now: now
        )
    }

    /// A character of a sentence, or one in its place: a sentence only has to be understood.
    private func kept(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        guard lacksCharacters, !scalar.isASCII, storable[scalar] != true else { return scalar }
        return scalar == "“" || scalar == "”" ? "\"" : "?"
    }
}

extension FactsRequest {
    /// All texts that the set has the database look for or keep.
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
