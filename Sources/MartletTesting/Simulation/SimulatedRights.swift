internal import MartletModel
internal import MartletProtocol
internal import MartletRules
internal import MartletServerCore

/// The policies of a simulated world and its people's rights, and what the simulation knows of what
/// each device was shown.
struct SimulatedRights {
    /// The records that an answer was limited to.
    typealias Sight = [String: Set<RecordID>]

    /// The texts of the rules files; nil stands for a server without one.
    let files: [String?]
    /// The index of the rules file that the server has.
    private(set) var file: Int
    /// The days by which the server's clock is ahead.
    private(set) var days: Int64 = 0
    /// The user of each device, with roles and claims.
    private(set) var people: [Principal] = []
    /// A source of its own, so that a world without policies is as its seed determines it.
    var random: SeededRandom
    /// Whether rights change. Then people's roles and claims are random, too.
    let changes: Bool

    /// The records that each device was shown at each revision to which an answer led.
    var sights: [Int: [Revision: [Sight]]] = [:]
    /// The last sight of each device.
    var last: [Int: Sight] = [:]
    /// The devices that were sent everything at some time.
    var hadEverything: Set<Int> = []
    /// The last revision at which an answer to a device did not show a record.
    var hiddenAt: [Int: [Ledger.Record: Revision]] = [:]
    /// The last revision at which records of a type entered or left a device's sight.
    var movedAt: [Int: [String: Revision]] = [:]
    /// The sets that were judged, and those whose refusal follows from rights.
    var judged: Set<String> = []
    var excused: Set<String> = []
    /// The permanent ids of each device's new records, by the temporary ones.
    var permanent: [Int: [Ledger.Record: RecordID]] = [:]
    /// The existing records that have held a text.
    private var holders: [String: Set<Ledger.Record>] = [:]
    private var texts: [Ledger.Record: Set<String>] = [:]
    /// The texts that several records have held.
    private var shared: Set<String> = []
    /// The devices on which marks were written, by their numbers.
    var authors: [Int: Int] = [:]

    private let isApart: Bool
    private var programs: [Int: RulesProgram] = [:]
    /// The records that people see at a revision.
    private var known: (revision: Revision, rows: FoldedRows, lookups: RowLookups)?
    private var seen: [Viewer: Sight] = [:]

    init(seed: UInt64, devices: Int, isApart: Bool) {
        self.isApart = isApart
        changes = true
        files = SimulatedRules(isApart: isApart).files
        random = SeededRandom(seed: seed)
        file = random.below(files.count - 1)
        for device in 0..<devices { people.append(person(device)) }
    }

    /// Makes rights that do not change.
    /// - Parameter people: The users of the devices.
    init(rules: String, people: [Principal]) {
        files = [rules]
        file = 0
        self.people = people
        changes = false
        isApart = false
        random = SeededRandom(seed: 0)
    }

    /// The users whom memberships name.
    static let users = ["u0", "u1", "u2"]

    /// The first device is the office's.
    private mutating func person(_ device: Int) -> Principal {
        var roles = device == 0 || random.chance(15) ? ["office"] : []
        if random.chance(40) { roles.append("coach") }
        var claims = ["own": "d\(device).%"]
        if random.chance(70) { claims["codes"] = random.one(of: ["c%1%", "%2", "c%3"]) }
        // If people work apart, nobody has two devices.
        let user = isApart ? "u\(device)" : Self.users[device % Self.users.count]
        return Principal(name: "t\(device)", user: user, roles: roles, claims: claims)
    }

    /// The text of the rules file; nil if the server has none.
    var text: String? { files[file] }

    // MARK: - Changes

    enum Change {
        case person(Int)
        case file
        case day
    }

    /// Changes a person's roles and claims, the rules file, or the day.
    mutating func change() -> Change? {
        switch random.below(10) {
        case 0..<5:
            guard people.count > 1 else { return nil }
            let device = 1 + random.below(people.count - 1)
            people[device] = person(device)
            return .person(device)
        case 5:
            days += 1
            return .day
        case 6, 7:
            file = random.chance(15) ? files.count - 1 : random.below(files.count - 1)
            forgetPrograms()
            return .file
        default: return nil
        }
    }

    // MARK: - Sight

    private static let day: Int64 = 86_400_000

    /// The server's time.
    func serverTime(_ now: Int64) -> Int64 { now + days * Self.day }

    func viewer(_ person: Principal, _ now: Int64) -> Viewer {
        Viewer(
            user: person.user, roles: Set(person.roles), claims: person.claims,
            today: serverTime(now) / Self.day)
    }

    /// Returns the policies; nil if the server has none.
    mutating func program(_ schema: Schema) throws -> RulesProgram? {
        guard let text else { return nil }
        if let program = programs[file] { return program }
        let program = try RulesProgram(text, schema: schema)
        programs[file] = program
        return program
    }

    /// Forgets what was read against tables that the server has no more.
    mutating func forgetPrograms() { (programs, known, seen) = ([:], nil, [:]) }

    /// Returns what somebody sees at the end of the log; nil if it is everything, by any rows.
    mutating func sight(
        of person: Principal, in model: Model, _ schema: Schema, _ now: Int64
    ) throws -> Sight? {
        guard let program = try program(schema) else { return nil }
        let viewer = viewer(person, now)
        if schema.types.indices.allSatisfy({ program.extent(of: $0, for: viewer) == .whole }) {
            return nil
        }
        if known?.revision != model.revision {
            let rows = FoldedRows(model, schema)
            known = (model.revision, rows, rows.lookups())
            seen = [:]
        }
        if let sight = seen[viewer] { return sight }
        let sight =
            try known.map { try $0.rows.visible(by: program, to: viewer, $0.lookups) } ?? [:]
        seen[viewer] = sight
        return sight
    }

    /// Notes what an answer was limited to.
    /// - Returns: The number of records that moved since the last one.
    mutating func note(_ sight: Sight, of device: Int, at model: Model) -> Int {
        let revision = model.revision
        if sights[device]?[revision]?.contains(sight) != true {
            sights[device, default: [:]][revision, default: []].append(sight)
        }
        var moved = 0
        for (type, records) in model.records {
            let shown = sight[type] ?? []
            for id in records.keys where !shown.contains(id) {
                hiddenAt[device, default: [:]][Ledger.Record(type: type, id: id)] = revision
            }
            let before = last[device]?[type] ?? []
            guard shown != before else { continue }
            movedAt[device, default: [:]][type] = revision
            moved += shown.symmetricDifference(before).count
        }
        last[device] = sight
        return moved
    }

    // MARK: - Texts

    /// Notes the texts that an entry wrote, and the records that it ended.
    mutating func note(_ entry: ChangeSet, in model: Model) {
        for changes in entry.types {
            for id in changes.create + changes.update {
                let record = Ledger.Record(type: changes.name, id: id)
                guard let values = model.records[changes.name]?[id] else { continue }
                for text in Marks.found(in: values) {
                    holders[text, default: []].insert(record)
                    if (holders[text] ?? []).count > 1 { shared.insert(text) }
                    texts[record, default: []].insert(text)
                }
            }
            for id in changes.delete {
                let record = Ledger.Record(type: changes.name, id: id)
                for text in texts.removeValue(forKey: record) ?? [] {
                    holders[text]?.remove(record)
                }
            }
        }
    }

    /// Returns one of the texts that only a hidden record has had; nil if there is none. Texts of records
    /// that are gone are left out, and so are those that the device's person wrote.
    func leaked(_ texts: Set<String>, seeing sight: Sight, on device: Int) -> String? {
        texts.sorted().first { text in
            let author = Marks.number(of: text).flatMap { authors[$0] }
            guard author != device, !shared.contains(text), let holders = holders[text],
                !holders.isEmpty
            else {
                return false
            }
            return !holders.contains { sight[$0.type]?.contains($0.id) ?? false }
        }
    }
}
