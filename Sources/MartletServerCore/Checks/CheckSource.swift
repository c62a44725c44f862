package import MartletModel
package import MartletProtocol

/// Compares what devices hold with what is stored.
///
/// Reads what is committed, on a connection of its own; confined to whoever holds it.
package protocol CheckSource: AnyObject {
    /// As `LogSource.consistently`, for comparisons.
    var consistently: ConsistentReading? { get set }
    /// What a comparison finds, at a revision that is no older than any answered before the call.
    func compare(_ request: CheckRequest) throws(StorageFault) -> CheckAnswer
    /// Returns the steps of the storage's machine that comparisons have taken since the last call; 0 if they
    /// are not counted.
    func takeSteps() -> Int
}

extension CheckSource {
    package var consistently: ConsistentReading? {
        get { nil }
        set {}
    }

    package func takeSteps() -> Int { 0 }
}

extension CheckRequest {
    /// Answers type by type; a type or an attribute that is not known is said to be so.
    /// - Parameters:
    ///   - revision: What is stored is of.
    ///   - place: Where a type's records are found; nil where nowhere.
    ///   - compare: Compares a type's ranges by these attributes; nil where the device is too far
    ///     behind for that.
    package func answer<Place, Fault: Error>(
        at revision: Revision, of schema: Schema,
        place: (EntityType) throws(Fault) -> Place?,
        compare: (CheckedType, EntityType, Place, [Attribute]) throws(Fault) -> [RangeVerdict]?
    ) throws(Fault) -> CheckAnswer {
        var answer = CheckAnswer(revision: revision)
        for asked in types {
            var verdict = TypeVerdict(name: asked.name)
            guard let type = schema[asked.name], let place = try place(type),
                asked.ranges.allSatisfy({ $0.suits(type.keyKind) })
            else {
                verdict.isUnknown = true
                answer.types.append(verdict)
                continue
            }
            var attributes: [Attribute] = []
            for attribute in asked.attributes {
                if let known = type[attribute: attribute.name],
                    known.kind.rawValue == attribute.kind
                {
                    attributes.append(known)
                } else {
                    verdict.unknownAttributes.append(attribute.name)
                }
            }
            if verdict.unknownAttributes.isEmpty {
                guard let ranges = try compare(asked, type, place, attributes) else {
                    return CheckAnswer(revision: revision, isBehind: true)
                }
                verdict.ranges = ranges
            }
            answer.types.append(verdict)
        }
        return answer
    }
}

extension CheckedRange {
    /// Whether the bounds are keys of this kind.
    fileprivate func suits(_ kind: EntityType.KeyKind) -> Bool {
        [from, below].allSatisfy { bound in
            switch bound {
            case .integer: kind == .integer
            case .text: kind == .text
            case nil: true
            }
        }
    }
}
