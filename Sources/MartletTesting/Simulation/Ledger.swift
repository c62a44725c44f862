internal import MartletModel
internal import MartletProtocol

/// What the simulation knows independently of the code under test: every committed save, and what
/// its device had seen of each record it touched.
struct Ledger {
    struct Save {
        let device: Int
        let identifier: String
        let token: String
        /// The confirmed revision of each record the save touched, as the device knew it then;
        /// records it made itself are left out.
        let seen: [Record: Revision]
        /// The device's revision then: what it knew of every other record.
        let seenAll: Revision
        /// Whether the device may have lacked what it had saved before.
        var isOnPast = false
        /// Whether a save of before was in the queue and not in the tables.
        var isBesideUnapplied = false
        /// The revision the server gave it, once it is in the log.
        var revision: Revision?
        /// A person dropped it, or sent it again as another set, after it was refused.
        var isDecided = false
    }

    struct Record: Hashable {
        let type: String
        let id: RecordID
    }

    private(set) var saves: [String: Save] = [:]
    /// Order of saves, so that reports are the same for the same seed.
    private(set) var order: [String] = []
    /// What saves that were refused touch, by device.
    private(set) var refused: [Int: Set<Record>] = [:]
    /// Who changed a record, by revision, as the server's log tells.
    private var history: [Record: [(revision: Revision, author: String)]] = [:]

    mutating func add(_ save: Save) {
        saves[save.identifier] = save
        order.append(save.identifier)
    }

    mutating func decide(_ identifier: String) {
        saves[identifier]?.isDecided = true
    }

    /// Books that a device's save was refused, with the records that it touches.
    mutating func refuse(_ records: [Record], on device: Int) {
        refused[device, default: []].formUnion(records)
    }

    /// Books one entry of the server's log.
    /// - Returns: What is wrong with it; nil when nothing is.
    mutating func book(
        _ entry: ChangeSet, identifier: String, revision: Revision, author: String
    ) -> String? {
        if var save = saves[identifier] {
            if save.revision != nil { return "set \(identifier) is in the log twice" }
            save.revision = revision
            saves[identifier] = save
        }
        var problem: String?
        for changes in entry.types {
            for id in changes.create + changes.update + changes.delete {
                let record = Record(type: changes.name, id: id)
                // A record the save does not name was changed by an ON DELETE action.
                if let save = saves[identifier],
                    let seen = save.seen[record] ?? (id.isTemporary ? nil : save.seenAll),
                    let unseen = history[record]?.last(where: { $0.author != author }),
                    unseen.revision > seen
                {
                    problem =
                        "revision \(revision) overrode \(record.type) \(id), last changed by"
                        + " another at \(unseen.revision); its device had seen \(seen)"
                }
                // The author of a recreated record has seen what became of the earlier one, and may
                // change it freely until others touch it.
                if changes.create.contains(id) { history[record] = nil }
                history[record, default: []].append((revision, author))
            }
        }
        return problem
    }
}
