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

    private let script: String
    private let world: JudgedServer
    private let tables: [RandomRules.Table]
    private var seats: [Seat] = []
    private var chance: Chance
    /// How many records came to devices or left them while they were settled, how many they had in all
    /// comparisons, and how many there were.
    private var rows = (moved: 0, shown: 0, all: 0)
    /// The saves about which devices and the server were compared, and those that both refused.
    private var verdicts = (all: 0, early: 0)
    private var story: [String] = []

    /// - Parameter make: Makes the server and the reference of the rules.
    init(
        seed: UInt64, _ make: (RandomRules) throws -> (RulesServer, ReferenceDatabase)
    ) throws {
        chance = Chance(seed: seed)
        let rules = RandomRules(&chance)
        tables = rules.tables
        script = RulesServer.script(of: tables)
        let (server, reference) = try make(rules)
        world = try JudgedServer(server, reference, now: 20_784 * 86_400_000 + 3_600_000)
        for index in 0..<4 {
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
    /// sees tables whole, the notes say like memberships who sees what, and many may change them.
    private func secure() throws {
        var policies = RandomRules.Policies(over: tables, &chance)
        for table in tables where chance.percent(40) {
            policies.file += "CREATE POLICY office ON \(table.name) TO office USING (true);\n"
        }
        if chance.percent(70) { policies.file += "CREATE POLICY open ON notes USING (true);\n" }
        var noted = policies
        for table in tables.dropLast() where chance.percent(60) {
            noted.file += """
                CREATE POLICY noted ON \(table.name) FOR SELECT USING (c0 IN (
                    SELECT n.c0 FROM notes AS n WHERE n.c1 = martlet_user() OR n.c1 IN ('3', '')));

                """
        }
        // If a policy of chance reads its own table, this table's SELECT policies may read nothing.
        if world.accepts(noted) { policies = noted }
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
        case 0..<12:
            try save(index)
            if chance.percent(50) { try exchange(index) }
        case 12: change(index)
        case 13: if chance.percent(50) { try secure() }
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
        if let fault = world.faults.first { throw ReferenceFailure(fault) }
    }

    /// What a reader of a failure needs to know.
    var description: String {
        "\(world.policies?.file ?? "no rules")\n\(story.joined(separator: ", "))"
    }

    private func writeElsewhere() throws {
        let table = table()
        let id = chance.number(1..<12)
        if chance.percent(20) {
            return try world.execute("DELETE FROM \(table.name) WHERE id = \(id)")
        }
        let column = table.columns[
            chance.percent(60) ? chance.number(0..<2) : chance.number(0..<table.columns.count)]
        let value = RandomRules.literal(RandomRules.value(column.kind, &chance))
        try world.execute("UPDATE \(table.name) SET \(column.name) = \(value) WHERE id = \(id)")
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
        try exchange(index)
        let parked = try seats[index].device.store.parked()
        let agrees =
            refusal == nil ? !parked.contains { $0.reason == .permission } : !parked.isEmpty
        guard agrees else {
            let viewer = world.viewer(seats[index].principal)
            throw ReferenceFailure("\(viewer): \(refusal?.message ?? "allowed"), but \(parked)")
        }
        verdicts.early += refusal == nil ? 0 : 1
        verdicts.all += 1
    }

    private func save(_ index: Int, judges: Bool) throws {
        let store = try seats[index].device.store
        store.judgesSaves = judges
        try store.write(now: world.now) { context in
            for _ in 0..<(chance.percent(60) ? 1 : chance.number(2..<4)) {
                let table = table()
                let ids = try context.rows("SELECT id FROM \(table.name) ORDER BY id")
                    .compactMap { $0["id"] }
                let kind = chance.number(0..<8)
                guard kind > 2, let id = ids.randomElement(using: &chance) else {
                    _ = try context.insert(
                        table.name, values(of: table.columns.filter { _ in chance.percent(80) }))
                    continue
                }
                if kind == 3 {
                    try context.prepare("DELETE FROM \(table.name) WHERE id = ?").run([id])
                    continue
                }
                let columns = table.columns.filter { _ in chance.percent(40) }
                guard case .integer(let number) = id, !columns.isEmpty else { continue }
                _ = try context.update(table.name, .integer(number), values(of: columns))
            }
        }
    }

    private func values(of columns: [(name: String, kind: RandomRules.Kind)]) -> RecordValues {
        var values = RecordValues()
        for column in columns {
            values[column.name] = Self.value(RandomRules.value(column.kind, &chance))
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
        for _ in 0..<3 { try exchange(index) }
        let store = try seat.device.store
        #expect(try store.outboxCount == 0)
        let viewer = world.viewer(seat.principal)
        let expected = try world.reference.asPerson(viewer) { try visible() }
        let shown = try rows(of: seat.device)
        guard shown == expected else {
            let extra = Set(shown).subtracting(expected).sorted()
            let missing = Set(expected).subtracting(shown).sorted()
            throw ReferenceFailure(
                "\(viewer) on \(world.server.name) has too much: \(extra), lacks: \(missing)")
        }
        rows.moved += Set(before).symmetricDifference(shown).count
        rows.shown += shown.count
        rows.all += try visible().count
        for set in try store.parked() { try store.drop(set.identifier, now: 1_000) }
    }

    /// Returns the rows that the present role of the reference may see.
    private func visible() throws -> [String] {
        try tables.flatMap { table in
            try world.reference.connection.query(
                "SELECT \(table.names.joined(separator: ", ")) FROM \(table.name)"
            ).values().map { line(table, $0.map { $0.text }) }
        }.sorted()
    }

    private func rows(of device: SmallDevice) throws -> [String] {
        let connection = try device.connection()
        return try tables.flatMap { table in
            let statement = try connection.prepare(
                "SELECT \(table.names.joined(separator: ", ")) FROM \(table.name)")
            return try statement.rows { (row) throws(SQLiteError) in
                line(table, (0..<row.columnCount).map { row.isNull($0) ? nil : row.text($0) })
            }
        }.sorted()
    }

    /// Returns a row as both write it: PostgreSQL keeps the zeros at the end of a number.
    private func line(_ table: RandomRules.Table, _ values: [String?]) -> String {
        let texts = zip(table.columns, values.dropFirst()).map { column, text in
            guard let text else { return "-" }
            switch column.kind {
            case .numeric: return Double(text).map { "\($0)" } ?? text
            case .boolean: return text == "t" ? "1" : text == "f" ? "0" : text
            case .integer, .text, .date: return "“\(text)”"
            }
        }
        return "\(table.name) \(values[0] ?? "-") \(texts.joined(separator: " "))"
    }
}
