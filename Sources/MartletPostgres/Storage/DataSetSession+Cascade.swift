import MartletModel
import MartletServerCore
import PostgresKit

/// Finds the records that hold references to others, level by level. It reads chains within one
/// type at once.
struct ReferenceHolders {
    /// The records that refer to one record through one reference.
    struct Lookup: Hashable {
        let type: Int
        let attribute: String
        let parent: RecordID
    }

    /// The rights of a principal. Records that he may not see count as none; nil for all records.
    let rights: RowRights?
    private var known: [Lookup: [RecordID]] = [:]
    /// The lookups that have no answer yet.
    private var missing: Set<Lookup> = []

    init(seenBy rights: RowRights?) { self.rights = rights }

    /// Returns the holders in the order of their keys; none if they have yet to be read.
    mutating func holders(_ lookup: Lookup) -> [RecordID] {
        if let ids = known[lookup] { return ids }
        missing.insert(lookup)
        return []
    }

    /// Reads the answers to the open lookups.
    /// - Returns: Whether there were any.
    mutating func read(_ session: DataSetSession) throws(PostgresError) -> Bool {
        guard !missing.isEmpty else { return false }
        let forms = session.model.forms
        var parents: [Link: [RecordID]] = [:]
        var fresh = missing
        for lookup in missing {
            known[lookup] = []
            parents[Link(lookup), default: []].append(lookup.parent)
        }
        missing = []
        let links = parents.sorted { $0.key < $1.key }
        let statements = links.map {
            forms[$0.key.type].holding(
                $0.key.attribute, $0.value, isChain: isChain($0.key, session))
        }
        for ((link, _), rows) in zip(links, try session.run(statements)) {
            let form = forms[link.type]
            for row in 0..<rows.count {
                let parent: RecordID
                if case .integer(let number) = try rows.value(row, 1) {
                    parent = .integer(number)
                } else {
                    parent = .text(try rows.text(row, 1))
                }
                let lookup = Lookup(
                    type: link.type, attribute: link.attribute, parent: parent)
                let child = try form.id(rows, row, 0)
                // A chain may reach records that an earlier one has read.
                if known[lookup] == nil { fresh.insert(lookup) }
                guard fresh.contains(lookup) else { continue }
                known[lookup, default: []].append(child)
                guard isChain(link, session) else { continue }
                // The records that refer to it have been read too.
                let next = Lookup(type: link.type, attribute: link.attribute, parent: child)
                if known[next] == nil {
                    known[next] = []
                    fresh.insert(next)
                }
            }
        }
        try removeHidden(fresh, session)
        for lookup in fresh { known[lookup]?.sort() }
        return true
    }

    private mutating func removeHidden(
        _ fresh: Set<Lookup>, _ session: DataSetSession
    ) throws(PostgresError) {
        guard let rights else { return }
        let found = fresh.flatMap { lookup in
            known[lookup, default: []].map { RecordAddress(lookup.type, $0) }
        }
        let seen = try rights.visible(
            Array(Set(found)), read: session.ruleRows(of:where:isAmong:))
        for lookup in fresh {
            known[lookup]?.removeAll { !seen.contains(RecordAddress(lookup.type, $0)) }
        }
    }

    /// Returns whether deleting a record deletes those of its own type that refer to it.
    private func isChain(_ link: Link, _ session: DataSetSession) -> Bool {
        session.model.cascades.links(from: link.type).contains {
            $0.type == link.type && $0.reference.attribute == link.attribute
                && $0.reference.onDelete == .cascade
        }
    }

    private struct Link: Hashable, Comparable {
        let type: Int
        let attribute: String

        init(_ lookup: Lookup) {
            type = lookup.type
            attribute = lookup.attribute
        }

        static func < (left: Link, right: Link) -> Bool {
            (left.type, left.attribute) < (right.type, right.attribute)
        }
    }
}

extension TableFormat {
    /// Selects the records of the type that refer to one of `parents`: their keys, and the keys of
    /// their parents.
    /// - Parameter isChain: Whether to include the records that refer to one of these, and so on.
    fileprivate func holding(
        _ attribute: String, _ parents: [RecordID], isChain: Bool
    ) -> PostgresStatement {
        let column = column(attribute) ?? table.key
        let type = column.parameterType
        let first = """
            SELECT t.\(key), t.\(column.sqlName) FROM \(table.sqlName) AS t \
            WHERE t.\(column.sqlName) = ANY ($1::\(type)[])
            """
        guard isChain else { return PostgresStatement(first, [keys(parents)]) }
        return PostgresStatement(
            """
            WITH RECURSIVE held (id, holder) AS (\(first) \
            UNION SELECT t.\(key), t.\(column.sqlName) FROM held \
            JOIN \(table.sqlName) AS t ON t.\(column.sqlName) = held.id) SELECT id, holder FROM held
            """, [keys(parents)])
    }
}

extension DataSetSession {
    /// Finds the effects of the ON DELETE actions of the sets' deletes. The facts of the records
    /// found are still missing then.
    func addAffected(
        to facts: inout [SetFacts], of requests: [FactsRequest]
    ) throws(PostgresError) {
        var deleted: [[RecordAddress]] = []
        var updated: [[RecordAddress: Attributes]] = []
        for (request, facts) in zip(requests, facts) {
            guard let plan = request.plan else {
                deleted.append([])
                updated.append([:])
                continue
            }
            deleted.append(
                plan.deletes.map { facts.permanentAddress(of: $0.address) }
                    .filter { !$0.id.isTemporary && !reachesBarred(deletingFrom: $0.type) })
            var changes: [RecordAddress: Attributes] = [:]
            for change in plan.updates {
                changes[facts.permanentAddress(of: change.address)] = resolved(
                    change, assigned: [:], facts)
            }
            updated.append(changes)
        }
        let rows = try affected(byDeleting: deleted, updating: updated)
        for index in facts.indices { facts[index].affected = rows[index] }
    }

    /// Returns the effects of the ON DELETE actions of each set's deletes after its updates.
    /// - Parameters:
    ///   - deleted: The permanent ids of deleted records, for each set.
    ///   - updated: The updates by permanent ids, with permanent ids in their references.
    ///   - rights: The rights of a principal. The search then goes on only from records that he sees, and
    ///     finds only such records; nil for all. It does not look at the deleted records.
    func affected(
        byDeleting deleted: [[RecordAddress]], updating updated: [[RecordAddress: Attributes]],
        for rights: RowRights? = nil
    ) throws(PostgresError) -> [[AffectedRow]] {
        var holders = ReferenceHolders(seenBy: rights)
        var found: [[AffectedRow]] = []
        repeat {
            found = zip(deleted, updated).map { affected($0, $1, &holders) }
        } while try holders.read(self)
        return found
    }

    /// Searches breadth first from the deleted records. A record that the set moves away is not
    /// reached through its old reference; a record that it moves to a deleted record is.
    private func affected(
        _ deleted: [RecordAddress], _ updated: [RecordAddress: Attributes],
        _ holders: inout ReferenceHolders
    ) -> [AffectedRow] {
        // The records that the set moves, by the record that they refer to afterwards.
        var arrived: [ReferenceHolders.Lookup: [RecordID]] = [:]
        for (record, changes) in updated {
            for link in model.forms[record.type].columns.references {
                guard let parent = changes[link.attribute].flatMap({ RecordID($0) }) else {
                    continue
                }
                arrived[
                    .init(type: record.type, attribute: link.attribute, parent: parent), default: []
                ].append(record.id)
            }
        }
        var removed = Set(deleted)
        var queue = deleted.filter { !model.cascades.links(from: $0.type).isEmpty }
        var next = 0
        var found: [AffectedRow] = []
        while next < queue.count {
            let parent = queue[next]
            next += 1
            for link in model.cascades.links(from: parent.type) {
                let attribute = link.reference.attribute
                var children: [RecordAddress] = []
                let lookup = ReferenceHolders.Lookup(
                    type: link.type, attribute: attribute, parent: parent.id)
                let holding = holders.holders(lookup)
                for id in holding {
                    let child = RecordAddress(link.type, id)
                    if let moved = updated[child]?[attribute], moved != parent.id.value { continue }
                    children.append(child)
                }
                if let moved = arrived[lookup] {
                    let there = Set(children)
                    for id in moved.sorted() {
                        let child = RecordAddress(link.type, id)
                        if !there.contains(child) { children.append(child) }
                    }
                }
                let type = model.forms[link.type].type
                for child in children {
                    let isSendable = SendableKey.fault(of: child.id, type) == nil
                    guard link.reference.onDelete == .cascade else {
                        found.append(
                            AffectedRow(
                                address: child,
                                effect: .changed(attribute: attribute, held: parent.id),
                                facts: nil, isSendable: isSendable))
                        continue
                    }
                    guard removed.insert(child).inserted else { continue }
                    found.append(
                        AffectedRow(
                            address: child, effect: .removed, facts: nil, isSendable: isSendable))
                    if !model.cascades.links(from: child.type).isEmpty { queue.append(child) }
                }
            }
        }
        return found
    }

    /// Returns a change's attributes with permanent ids in place of temporary ones, as far as they
    /// are known.
    func resolved(
        _ change: SetPlan.Change, assigned: [RecordAddress: RecordID], _ facts: SetFacts
    ) -> Attributes {
        var attributes = change.attributes
        for (attribute, target) in model.forms[change.type].columns.references {
            guard let index = attributes.names.firstIndex(of: attribute),
                case .integer(let number) = attributes.values[index], number < 0
            else { continue }
            let address = RecordAddress(target, .integer(number))
            if let id = assigned[address] ?? facts.permanent[address] {
                attributes.setValue(id.value, at: index)
            }
        }
        return attributes
    }
}
