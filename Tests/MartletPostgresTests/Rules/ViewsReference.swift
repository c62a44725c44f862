import Foundation
import MartletDevice
import MartletModel
import MartletRules
import MartletStore
import PostgresKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletServerCore

/// Devices of people whose rights change, and a PostgreSQL database that says what each of them may see.
final class ViewsReference {
    private struct Seat {
        let device: SmallDevice
        var principal: Principal
        /// How rarely the device exchanges.
        let absence: Int
    }

    private let rules: RandomRules
    private let script: String
    private let world: JudgedServer
    private var tables: [RandomRules.Table] { rules.tables }
    private var seats: [Seat] = []
    private var chance: Chance
    /// How many records came to devices or left them while they were settled, how many they had in all
    /// comparisons, and how many there were; and how many saves a device's constraints refused.
    private var rows = (moved: 0, shown: 0, all: 0, invalid: 0)
    /// The saves about which devices and the server were compared; those that the device refused; and
    /// those of new records among them that the server did not refuse.
    private var verdicts = (all: 0, early: 0, temporary: 0)
    /// How often a person's roles or claims changed, and how often the rules.
    private var rights = (changed: 0, replaced: 0)
    private var story: [String] = []

    /// - Parameter make: Makes the server and the reference of the rules.
    init(
        seed: UInt64, _ make: (RandomRules) throws -> (RulesServer, ReferenceDatabase)
    ) throws {
        chance = Chance(seed: seed)
        rules = RandomRules(&chance, constrained: true)
        script = rules.script(.file, rows: false)
        let (server, reference) = try make(rules)
        world = try JudgedServer(server, reference, now: 20_784 * 86_400_000 + 3_600_000)
        for index in 0..<chance.number(2..<5) {
            let disk = FaultDisk(name: DiskName.next("reference"), seed: UInt64(index))
            let device = try SmallDevice(disk, number: UInt64(index + 1), script: script)
            let absence = [1, 1, 3, 8][index]
            seats.append(
                Seat(device: device, principal: Principal(name: "p\(index)"), absence: absence))
            change(index)
        }
        try secure()
    }

    /// What the world compared, by name.
    var counts: [String: Int] {
        [
            "accepted": world.counts.accepted, "refused": world.counts.refused,
            "stale": world.counts.stale, "unclear": world.counts.unclear,
            "cut": world.counts.cut, "begun": world.counts.begun, "moved": rows.moved,
            "shown": rows.shown, "all": rows.all, "judged": verdicts.all, "early": verdicts.early,
            "changed": rights.changed, "replaced": rights.replaced, "invalid": rows.invalid,
            "violating": world.counts.violating, "temporary": verdicts.temporary,
        ]
    }

    /// Gives a person other roles and claims. His user stays, because the device is bound to it.
    private func change(_ index: Int) {
        var roles = RandomRules.roles(of: chance.number(0..<(1 << RandomRules.roles.count)))
        // The policies of `secure` show the office much.
        if index == 0, !roles.contains("office") { roles.append("office") }
        var claims: [String: String] = [:]
        if chance.percent(60) {
            claims["club"] = chance.one(of: RandomRules.texts.filter { !$0.isEmpty })
        }
        if chance.percent(60) { claims["number"] = "\(chance.number(-1..<5))" }
        seats[index].principal = Principal(
            name: "p\(index)", user: ["ann", "zoë", nil, "ann"][index], roles: roles, claims: claims
        )
    }

    /// Replaces the rules. Besides policies of chance there are some that make histories lively: the office
    /// sees tables whole, the memberships say who sees what, and many may change them.
    private func secure() throws {
        var policies = RandomRules.Policies(over: tables, &chance)
        for table in tables where chance.percent(40) {
            policies.file += "CREATE POLICY office ON \(table.sql) TO office USING (true);\n"
        }
        for table in tables {
            switch chance.number(0..<8) {
            case 0:
                policies.file +=
                    "CREATE POLICY free ON \(table.sql) FOR INSERT WITH CHECK (true);\n"
            case 1, 2:
                policies.file += "CREATE POLICY free ON \(table.sql) FOR UPDATE USING (true);\n"
            case 3: policies.file += "CREATE POLICY free ON \(table.sql) FOR DELETE USING (true);\n"
            default: break
            }
            guard chance.percent(15), policies.granted.insert(table.name).inserted else { continue }
            let names = [table.sqlKey] + table.columns.map(\.sql)
            let list = names.dropFirst(chance.number(0..<2)).joined(separator: ", ")
            policies.file += """
                GRANT SELECT, INSERT (\(list)), UPDATE (\(names[1])), DELETE ON \(table.sql) TO PUBLIC;

                """
        }
        let members = tables[tables.count - 1]
        if chance.percent(70) {
            policies.file += "CREATE POLICY open ON \(members.sql) USING (true);\n"
        }
        var noted = policies
        let (number, person) = (members.columns[0].sql, members.columns[1].sql)
        for table in tables.dropLast() where chance.percent(60) {
            noted.file += """
                CREATE POLICY noted ON \(table.sql) FOR SELECT USING (\(table.columns[0].sql) IN (
                    SELECT m.\(number) FROM \(members.sql) AS m
                    WHERE m.\(person) = martlet_user() OR m.\(person) IN ('3', '')));

                """
        }
        // If a policy of chance reads its own table, this table's SELECT policies may read nothing.
        if world.accepts(noted) { policies = noted }
        // A new row must not count as one that was there.
        for table in tables where chance.percent(20) {
            var once = policies
            once.file += """
                CREATE POLICY once ON \(table.sql) AS RESTRICTIVE FOR INSERT WITH CHECK (NOT EXISTS (
                    SELECT FROM \(table.sql) AS o WHERE o.\(table.sqlKey) = \(table.sql).\(table.sqlKey)));

                """
            if world.accepts(once) { policies = once }
        }
        try world.secure(by: chance.percent(8) ? nil : policies)
    }

    /// Returns the table of a change: often the one that others read.
    private func table() -> RandomRules.Table {
        chance.percent(40) ? tables[tables.count - 1] : chance.one(of: tables)
    }

    // MARK: - Steps

    func step() throws {
        let index = chance.number(0..<seats.count)
        let kind = chance.number(0..<30)
        story.append("\(index): \(kind)")
        switch kind {
        case 0..<12, 22, 23, 24:
            try save(index)
            if chance.percent(50) { try exchange(index) }
        case 12, 21:
            change(index)
            rights.changed += 1
        case 13 where chance.percent(50):
            try secure()
            rights.replaced += 1
        case 15: world.now += 86_400_000 * Int64(chance.number(1..<3))
        case 16:
            // Answers end within differences, between revisions and within them.
            try world.restart(
                answerBytes: chance.one(of: [80, 400, 1 << 20]),
                partBytes: chance.one(of: [1, 64 << 10]))
        case 17:
            let newest = Int64(chance.number(0..<6))
            while !world.server.node.compact(keeping: newest).isDone {}
        case 14, 18: try writeElsewhere()
        case 19 where chance.percent(20): try seats[index].device.beginRefetching(script: script)
        case 19, 20: try exchange(index, lost: chance.number(1..<4))
        default: if chance.number(0..<seats[index].absence) == 0 { try settle(index) }
        }
        if let fault = world.faults.first { throw ReferenceFailure(fault) }
    }

    func end() throws {
        for index in seats.indices { try settle(index) }
        try world.compareRows()
        if let fault = world.faults.first { throw ReferenceFailure(fault) }
    }

    /// What a reader of a failure needs to know.
    var description: String {
        "\(rules.script(.file))\n\(world.policies?.file ?? "no rules")\n\(story.joined(separator: ", "))"
    }

    private func writeElsewhere() throws {
        let table = table()
        if chance.percent(15) {
            let key = RandomRules.key(.text, chance.number(0..<11))
            let values = (table.keyKind == .text ? [key] : []) + table.columns.map { value(of: $0) }
            return try world.execute(RandomRules.insertion(values, table.given, into: table))
        }
        guard let id = RecordID(RandomRules.key(table.keyKind, chance.number(0..<11))) else {
            return
        }
        let condition = table.condition(id)
        if chance.percent(20) {
            return try world.execute("DELETE FROM \(table.sql) WHERE \(condition)")
        }
        let column =
            table.columns[
                chance.percent(50) ? chance.number(0..<2) : chance.number(0..<table.columns.count)]
        let literal = RandomRules.literal(value(of: column))
        try world.execute("UPDATE \(table.sql) SET \(column.sql) = \(literal) WHERE \(condition)")
    }

    private func value(of column: RandomRules.Column) -> Value {
        RandomRules.value(of: column, &chance)
    }

    /// Changes some of the records that the device has, in one save.
    private func save(_ index: Int) throws {
        guard chance.percent(20) else { return try save(index, judges: false) }
        // A device that has everything agrees with the server about what its user may do.
        try settle(index)
        let start = chance
        var refusal: StoreError?
        do {
            try save(index, judges: true)
        } catch let error as StoreError where error.kind == .permission {
            refusal = error
            chance = start
            try save(index, judges: false)
        }
        let store = try seats[index].device.store
        let makesRecords = try !store.local.rows(
            "SELECT 1 FROM martlet_changes WHERE typeof(id) = 'integer' AND id < 0 LIMIT 1"
        ).isEmpty
        try exchange(index)
        let parked = try store.parked()
        // A condition that compares ids may judge a temporary one in another way.
        let isTemporary = refusal != nil && parked.isEmpty && makesRecords
        let agrees =
            refusal == nil
            ? !parked.contains { set in
                set.reason == .permission && !set.changes.contains { $0.id.isTemporary }
            } : !parked.isEmpty || isTemporary
        guard agrees else {
            let viewer = world.viewer(seats[index].principal)
            throw ReferenceFailure("\(viewer): \(refusal?.message ?? "allowed"), but \(parked)")
        }
        verdicts.temporary += isTemporary ? 1 : 0
        verdicts.early += refusal == nil ? 0 : 1
        verdicts.all += 1
    }

    /// A save that the device's constraints refuse changes nothing.
    private func save(_ index: Int, judges: Bool) throws {
        let store = try seats[index].device.store
        store.judgesSaves = judges
        do {
            try store.write(now: world.now) { context in
                for _ in 0..<(chance.percent(60) ? 1 : chance.number(2..<4)) {
                    try change(table(), in: context)
                }
            }
        } catch let error as StoreError where error.kind == .constraint {
            rows.invalid += 1
        }
    }

    private func change(_ table: RandomRules.Table, in context: WriteContext) throws {
        let ids = try self.ids(of: table, in: context)
        let kind = chance.number(0..<8)
        guard kind > 2, let id = ids.randomElement(using: &chance) else {
            let columns = table.columns.filter { $0.isRequired || chance.percent(80) }
            let own = RandomRules.key(.text, chance.number(0..<30))
            _ = try context.insert(
                table.name, values(of: columns, in: context),
                id: table.keyKind == .text ? RecordID(own)?.description : nil)
            return
        }
        if kind == 3 {
            try context.prepare("DELETE FROM \(table.sql) WHERE \(table.sqlKey) = ?")
                .run([Self.value(id.value)])
            return
        }
        let columns = table.columns.filter { _ in chance.percent(40) }
        guard !columns.isEmpty else { return }
        _ = try context.update(table.name, id, try values(of: columns, in: context))
    }

    private func ids(
        of table: RandomRules.Table, in context: WriteContext
    ) throws -> [RecordID] {
        try context.rows(
            "SELECT CAST(\(table.sqlKey) AS TEXT) AS id FROM \(table.sql) ORDER BY \(table.sqlKey)"
        ).compactMap { row in
            guard case .text(let text)? = row["id"] else { return nil }
            return table.id(text)
        }
    }

    /// Returns new values. References mostly lead to records that the device has.
    private func values(
        of columns: [RandomRules.Column], in context: WriteContext
    ) throws -> RecordValues {
        var values = RecordValues()
        for column in columns {
            var value = value(of: column)
            if let target = column.target, value != .null, chance.percent(95) {
                let ids = try ids(of: tables[target], in: context)
                value = ids.randomElement(using: &chance)?.value ?? .null
            }
            values[column.name] = Self.value(value)
        }
        return values
    }

    private static func value(_ value: Value) -> SQLValue {
        switch value {
        case .null: .null
        case .boolean(let flag): .integer(flag ? 1 : 0)
        case .integer(let number): .integer(number)
        case .real(let number): .real(number)
        case .text(let text): .text(text)
        }
    }

    // MARK: - Exchanges

    private func exchange(_ index: Int, lost: Int = 0) throws {
        let device = seats[index].device
        world.sender = seats[index].principal
        try device.sync(lost: lost) { try world.answer($0) }
        guard lost == 0, !device.errors.isEmpty else { return }
        throw ReferenceFailure("\(index): \(device.errors)")
    }

    /// Exchanges until the device has everything, and compares its rows with those that PostgreSQL shows
    /// its user.
    private func settle(_ index: Int) throws {
        let seat = seats[index]
        let before = try rows(of: seat.device)
        // The second exchange brings what came back for own sets, and confirms a purge.
        for _ in 0..<2 { try exchange(index) }
        let store = try seat.device.store
        #expect(try store.outboxCount == 0)
        let viewer = world.viewer(seat.principal)
        let expected = try world.reference.asPerson(viewer) { try world.reference.lines() }
        let shown = try rows(of: seat.device)
        guard shown == expected else {
            let extra = Set(shown).subtracting(expected).sorted()
            let missing = Set(expected).subtracting(shown).sorted()
            throw ReferenceFailure(
                "\(viewer) on \(world.server.name) has too much: \(extra), lacks: \(missing)")
        }
        rows.moved += Set(before).symmetricDifference(shown).count
        rows.shown += shown.count
        rows.all += try world.reference.lines().count
        for set in try store.parked() { try store.drop(set.identifier, now: 1_000) }
    }

    private func rows(of device: SmallDevice) throws -> [String] {
        try device.connection().lines(of: tables)
    }
}
