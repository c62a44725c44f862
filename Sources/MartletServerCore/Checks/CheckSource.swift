package import MartletModel
package import MartletProtocol

/// Compares the devices' records with the stored ones.
///
/// It reads committed rows on a connection of its own, and is confined to the queue of its holder.
/// A call throws `StorageFault` if the rows cannot be read.
package protocol CheckSource: AnyObject {
    /// The same as `LogSource.consistently`, for comparisons.
    var consistently: ConsistentReading? { get set }
    /// Returns the result of a comparison, at a revision that is no older than any answered before
    /// the call.
    func compare(_ request: CheckRequest) throws(StorageFault) -> CheckAnswer
    /// Returns the steps of the storage's virtual machine that comparisons have taken since the
    /// last call; 0 if they are not counted.
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
    /// Returns the answer, type by type. It marks types and attributes that the server does not
    /// have.
    ///
    /// - Parameters:
    ///   - revision: The revision of the stored records.
    ///   - table: Returns the table of a type's records; nil if there is none.
    ///   - compare: Compares a type's ranges by these attributes; returns nil if the device is too
    ///     far behind for that.
    /// - Throws: The errors of `table` and `compare`.
    package func answer<Table, Fault: Error>(
        at revision: Revision, of schema: Schema,
        table: (EntityType) throws(Fault) -> Table?,
        compare: (CheckedType, EntityType, Table, [Attribute]) throws(Fault) -> [RangeVerdict]?
    ) throws(Fault) -> CheckAnswer {
        var answer = CheckAnswer(revision: revision)
        for asked in types {
            var verdict = TypeVerdict(name: asked.name)
            guard let type = schema[asked.name], let table = try table(type),
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
                guard let ranges = try compare(asked, type, table, attributes) else {
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
    /// Returns whether the bounds are keys of this kind.
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
