import MartletModel

/// The rules once more, as simply as they can be said: every change of every record is kept with
/// its author, and a set is judged by looking through them. Shares no code with the server.
struct ModelOracle {
    struct Row: Equatable {
        var attributes: [String: Value] = [:]
    }

    struct Key: Hashable {
        let type: String
        let id: RecordID
    }

    /// One wish of a set.
    struct Wish {
        enum Verb { case create, update, delete }
        let verb: Verb
        let type: String
        let id: RecordID
        var base: Int64?
        var attributes: [String: Value] = [:]
    }

    enum Action { case cascade, setNull, restrict }

    /// Type, attribute, target, what a deletion does.
    static let references: [(type: String, attribute: String, target: String, action: Action)] = [
        ("players", "team_id", "teams", .cascade),
        ("players", "mentor_id", "players", .setNull),
        ("trophies", "team_id", "teams", .restrict),
    ]
    static let uniques = [("teams", "name"), ("trophies", "code")]

    private(set) var rows: [Key: Row] = [:]
    /// Every change of every record: revision and device.
    private(set) var history: [Key: [(revision: Int64, device: String)]] = [:]
    private(set) var revision: Int64 = 0
    private var ids: [String: Int64] = [:]
    private var mapped: [String: RecordID] = [:]

    private func mapKey(_ device: String, _ key: Key) -> String {
        "\(device) \(key.type) \(key.id)"
    }

    func permanent(_ key: Key, _ device: String) -> Key {
        guard key.id.isTemporary, let id = mapped[mapKey(device, key)] else { return key }
        return Key(type: key.type, id: id)
    }

    /// The newest revision at which someone else changed a record.
    private func foreign(_ key: Key, _ device: String) -> Int64 {
        history[key]?.last { $0.device != device }?.revision ?? 0
    }

    /// What a deletion of the keys takes along and empties, in `rows`.
    func reach(_ deleted: [Key], in rows: [Key: Row]) -> (gone: Set<Key>, emptied: Set<Key>) {
        var gone = Set(deleted)
        var queue = deleted
        var emptied: Set<Key> = []
        while let parent = queue.popLast() {
            for reference in Self.references where reference.target == parent.type {
                for (key, row) in rows where key.type == reference.type {
                    guard row.attributes[reference.attribute] == parent.id.value else { continue }
                    switch reference.action {
                    case .cascade: if gone.insert(key).inserted { queue.append(key) }
                    case .setNull: emptied.insert(key)
                    case .restrict: break
                    }
                }
            }
        }
        return (gone.subtracting(deleted), emptied)
    }

    /// Judges and carries out a set; gives "accepted N" or the reason.
    mutating func decide(_ wishes: [Wish], seen: Int64, device: String) -> String {
        var assigned: [Key: RecordID] = [:]
        var nextIDs = ids
        for wish in wishes where wish.verb == .create && wish.id.isTemporary {
            let key = Key(type: wish.type, id: wish.id)
            if mapped[mapKey(device, key)] != nil { return "invalid" }
            nextIDs[wish.type, default: 0] += 1
            assigned[key] = .integer(nextIDs[wish.type] ?? 0)
        }
        var unknown = false
        func resolve(_ key: Key) -> Key {
            guard key.id.isTemporary else { return key }
            if let id = assigned[key] { return Key(type: key.type, id: id) }
            let known = permanent(key, device)
            if known.id.isTemporary { unknown = true }
            return known
        }
        var resolved: [(wish: Wish, key: Key)] = []
        for wish in wishes {
            var wish = wish
            for reference in Self.references where reference.type == wish.type {
                if let id = wish.attributes[reference.attribute].flatMap({ RecordID($0) }) {
                    let target = resolve(Key(type: reference.target, id: id))
                    wish.attributes[reference.attribute] = target.id.value
                }
            }
            resolved.append((wish, resolve(Key(type: wish.type, id: wish.id))))
        }
        if unknown { return "dependency" }
        let changed = resolved.filter { $0.wish.verb != .create }.map(\.key)
        if Set(changed).count < changed.count { return "invalid" }
        if let refusal = judgeRevisions(resolved, seen, device) { return refusal }
        return carryOut(resolved, assigned, nextIDs, device)
    }

    private func judgeRevisions(
        _ resolved: [(wish: Wish, key: Key)], _ seen: Int64, _ device: String
    ) -> String? {
        for (wish, key) in resolved where wish.verb == .create && rows[key] != nil {
            _ = wish
            return "stale"
        }
        for (wish, key) in resolved where wish.verb == .create && history[key] != nil {
            _ = wish
            if foreign(key, device) > seen { return "stale" }
        }
        for verb in [Wish.Verb.update, .delete] {
            for (wish, key) in resolved where wish.verb == verb {
                guard rows[key] != nil, let last = history[key]?.last else { return "stale" }
                if let base = wish.base, base > last.revision { return "invalid" }
                if (wish.base ?? seen) < foreign(key, device) { return "stale" }
            }
        }
        // The rows as they are once the set's updates are done.
        var moved = rows
        for (wish, key) in resolved where wish.verb == .update {
            moved[key]?.attributes.merge(wish.attributes) { $1 }
        }
        let named = Set(resolved.map(\.key))
        let deleted = resolved.filter { $0.wish.verb == .delete }.map(\.key)
        let (gone, emptied) = reach(deleted, in: moved)
        for key in gone.union(emptied).subtracting(named) where foreign(key, device) > seen {
            return "stale"
        }
        return nil
    }

    private mutating func carryOut(
        _ resolved: [(wish: Wish, key: Key)], _ assigned: [Key: RecordID],
        _ nextIDs: [String: Int64], _ device: String
    ) -> String {
        var after = rows
        for (wish, key) in resolved {
            switch wish.verb {
            case .create: after[key] = Row(attributes: wish.attributes)
            case .update: after[key]?.attributes.merge(wish.attributes) { $1 }
            case .delete: break
            }
        }
        let deleted = resolved.filter { $0.wish.verb == .delete }.map(\.key)
        let (gone, emptied) = reach(deleted, in: after)
        for key in deleted + Array(gone) { after[key] = nil }
        for reference in Self.references {
            for (key, row) in after where key.type == reference.type {
                guard let id = row.attributes[reference.attribute].flatMap({ RecordID($0) }),
                    after[Key(type: reference.target, id: id)] == nil
                else { continue }
                let target = Key(type: reference.target, id: id)
                guard reference.action == .setNull,
                    deleted.contains(target) || gone.contains(target)
                else { return "constraint" }
                after[key]?.attributes[reference.attribute] = .null
            }
        }
        for (type, attribute) in Self.uniques {
            // A record made under a deleted one was there for a moment.
            let momentary = resolved.filter { $0.wish.verb == .create && after[$0.key] == nil }
                .map { Row(attributes: $0.wish.attributes) }
            let values = (after.filter { $0.key.type == type }.map(\.value) + momentary)
                .compactMap { $0.attributes[attribute] }.filter { $0 != .null }
            if Set(values).count < values.count { return "constraint" }
        }
        for (wish, key) in resolved where wish.verb == .create && after[key] == nil {
            return "invalid"
        }
        revision += 1
        // A new record has no past.
        for (wish, key) in resolved where wish.verb == .create { history[key] = nil }
        for key in Set(resolved.map(\.key)).union(gone).union(emptied) {
            history[key, default: []].append((revision, device))
        }
        rows = after
        ids = nextIDs
        for (temporary, id) in assigned { mapped[mapKey(device, temporary)] = id }
        return "accepted \(revision)"
    }
}
