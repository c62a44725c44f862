import MartletModel
import MartletProtocol

/// A device that makes change sets, sends them until they are decided, and knows what became of each.
struct RandomDevice {
    struct Pending {
        let identifier: String
        let text: String
        /// The records that it changes or deletes: type and id.
        let named: [String]
    }

    let client: String
    private(set) var pending: [Pending] = []
    /// What became of the sets that were decided: nil if they were accepted.
    private(set) var decided: [String: String?] = [:]
    private(set) var faults: [String] = []
    private var made = 0
    private var temporary = 0

    init(_ client: String) { self.client = client }

    /// Makes a set of one table, of what the device has.
    /// - Parameter preferred: Records that it changes or deletes rather than others: type and id.
    mutating func make(
        _ table: LiveTable, keys: [UInt32: String], _ folded: FoldedLog,
        preferring preferred: Set<String> = [], _ chance: inout Chance
    ) {
        guard let key = table.key else { return }
        let records = (folded.records[table.type] ?? [:]).sorted {
            $0.key.bytes.lexicographicallyPrecedes($1.key.bytes)
        }
        var (create, update, delete): ([String], [String], [String]) = ([], [], [])
        var attributes: [String] = []
        var named: [String] = []
        func values(_ columns: [LiveTable.Column], _ chance: inout Chance) -> [String] {
            columns.map { column in
                let value = RandomValue.value(column, keys: keys, &chance).json
                return "\(RandomValue.json(column.name)):\(value)"
            }
        }
        let isInteger = key.type.hasPrefix("int")
        func reference(_ id: FoldedLog.ID) -> String {
            isInteger ? id.description : RandomValue.json(id.description)
        }
        if records.isEmpty || chance.percent(40) {
            let id: String
            if isInteger {
                temporary -= 1
                id = String(temporary)
            } else {
                id = RandomValue.key(key.type, &chance).json
            }
            create.append(id)
            let some = table.writable.filter {
                $0.isRequired && !$0.hasDefault || chance.percent(50)
            }
            let name = isInteger ? "\"\(id)\"" : id
            attributes.append("\(name):{\(values(some, &chance).joined(separator: ","))}")
        }
        let liked = records.filter { preferred.contains("\(table.type)/\($0.key)") }
        let some = !liked.isEmpty && chance.percent(60) ? liked : records
        if let (id, record) = some.randomElement(using: &chance), chance.percent(70),
            !create.contains(reference(id))
        {
            let isGone = chance.percent(25)
            named.append("\(table.type)/\(id)")
            var members = ["\"revision\":\(record.revision)"]
            if !isGone {
                let columns = table.writable.shuffled(using: &chance).prefix(chance.number(1..<3))
                members += values(Array(columns), &chance)
            }
            if isGone { delete.append(reference(id)) } else { update.append(reference(id)) }
            attributes.append(
                "\(RandomValue.json(id.description)):{\(members.joined(separator: ","))}")
        }
        guard !attributes.isEmpty else { return }
        made += 1
        let identifier = "\(client)-\(made)"
        pending.append(
            Pending(
                identifier: identifier,
                text: TestStore.set(
                    RandomValue.escaped(table.type), create: create, update: update,
                    delete: delete, attributes.joined(separator: ","), identifier: identifier,
                    sequence: made), named: named))
    }

    /// What it sends; nil if nothing waits.
    func request(at revision: Revision) -> String? {
        guard !pending.isEmpty else { return nil }
        return """
            {"clientId":"\(client)","maxRevision":\(revision),\
            "changeSets":[\(pending.map(\.text).joined(separator: ","))]}
            """
    }

    /// Takes in what became of the sets that were sent.
    mutating func take(_ answer: SyncAnswer) {
        for set in pending {
            let own = answer.changeSets.filter { $0.identifier == set.identifier }
            guard let fate = own.last(where: { $0.reason != nil }) ?? own.last else {
                faults.append("there is no word of the set \(set.text)")
                continue
            }
            if fate.reason != nil, fate.message?.isEmpty != false {
                faults.append("the set is refused without a sentence: \(set.text)")
            }
            guard fate.reason != .busy else { continue }
            decided[set.identifier] = .some(fate.reason.map { "\($0): \(fate.message ?? "")" })
            pending.removeAll { $0.identifier == set.identifier }
        }
    }
}
