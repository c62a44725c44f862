internal import MartletModel
internal import MartletProtocol

/// The knowledge of the simulation that is independent of the code under test: every committed
/// save, and the revision of each touched record that its device had seen.
struct Ledger {
    struct Save {
        let device: Int
        let identifier: String
        let token: String
        /// The confirmed revision of each record that the save touched, as the device knew it then.
        /// Records that the save created are left out.
        let seen: [Record: Revision]
        /// The device's revision at that time, up to which it knew every other record.
        let seenAll: Revision
        /// Whether the device may have lacked its own earlier saves.
        var isOnPast = false
        /// Whether an earlier save was in the queue and not in the tables.
        var isBesideUnapplied = false
        /// The revision that the server gave it; nil if it is not in the log.
        var revision: Revision?
        /// Whether a person dropped the refused save, or sent it again as another set.
        var isDecided = false
    }

    struct Record: Hashable {
        let type: String
        let id: RecordID
    }

    private(set) var saves: [String: Save] = [:]
    /// The saves in their order, so that reports are the same for the same seed.
    private(set) var order: [String] = []
    /// The records that refused saves touch, by device.
    private(set) var refused: [Int: Set<Record>] = [:]
    /// The authors of each record's changes, by revision, as the server's log names them.
    private var history: [Record: [(revision: Revision, author: String)]] = [:]

    mutating func add(_ save: Save) {
        saves[save.identifier] = save
        order.append(save.identifier)
    }

    mutating func decide(_ identifier: String) {
        saves[identifier]?.isDecided = true
    }

    /// Notes that a device's save was refused, with the records that it touches.
    mutating func refuse(_ records: [Record], on device: Int) {
        refused[device, default: []].formUnion(records)
    }

    /// Notes one entry of the server's log.
    /// - Parameter isHidden: Whether the author could not see a record that the set does not name.
    /// - Returns: A sentence about the fault of the entry; nil if there is none.
    mutating func book(
        _ entry: ChangeSet, identifier: String, revision: Revision, author: String,
        isHidden: (Record) throws -> Bool
    ) rethrows -> String? {
        if var save = saves[identifier] {
            if save.revision != nil { return "set \(identifier) is in the log twice" }
            save.revision = revision
            saves[identifier] = save
        }
        var problem: String?
        for changes in entry.types {
            for id in changes.create + changes.update + changes.delete {
                let record = Record(type: changes.name, id: id)
                // An ON DELETE action changed a record that the save does not name.
                if let save = saves[identifier],
                    let seen = save.seen[record] ?? (id.isTemporary ? nil : save.seenAll),
                    let unseen = history[record]?.last(where: { $0.author != author }),
                    unseen.revision > seen, try save.seen[record] != nil || !isHidden(record)
                {
                    problem =
                        "revision \(revision) overrode \(record.type) \(id), last changed by"
                        + " another at \(unseen.revision); its device had seen \(seen)"
                }
                // The author of a recreated record has seen the end of the earlier one, and may
                // change it until another device does.
                if changes.create.contains(id) { history[record] = nil }
                history[record, default: []].append((revision, author))
            }
        }
        return problem
    }
}
