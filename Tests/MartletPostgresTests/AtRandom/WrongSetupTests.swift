import Foundation
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres

/// Several things at once that are wrong around a data set with a server, and what is said of them.
private final class MisconfiguredWorld {
    private static let count = 5

    private let server: SmallServer
    private let admin: PostgresConnection
    /// A role of this world's own that is a member of the owner's.
    private let role: String
    private var chance: Chance
    private var history: [String] = []
    private var faults: [String] = []

    init(_ servers: DatabaseServers, _ capture: ExternalCapture, seed: UInt64) throws {
        chance = Chance(seed: seed &+ 99)
        let numbers = 0..<Self.count
        server = try SmallServer(
            servers, capture,
            script: numbers.map { TableChange.script.replacing("#", with: "\($0)") }.joined(),
            tables: numbers.flatMap { ["lists\($0)", "items\($0)"] })
        admin = try server.program()
        role = "doctor_" + UUID().uuidString.prefix(8).lowercased()
        try admin.execute(
            """
            CREATE ROLE \(role) LOGIN PASSWORD 'owner' IN ROLE martlet_owner
            """)
        history.append("\(capture)")
    }

    private func named(_ words: String, _ number: Int) throws -> String {
        var words = words.replacing("#", with: "\(number)").replacing("~", with: role)
            .replacing("@", with: server.owner["dbname"] ?? "")
        if words.contains("&"), let state = try LogicalState.read(admin) {
            words = words.replacing("&", with: state.publication)
        }
        if words.contains("%") {
            let row = try admin.query(
                "SELECT number FROM _martlet.types WHERE name = $1", [.text("items\(number)")])
            words = words.replacing("%", with: "\(try row.integer(0, 0))")
        }
        return words
    }

    func run() -> [String] {
        do {
            server.open()
            try server.converge()
            try live()
        } catch {
            faults.append("\(error)")
        }
        server.close()
        do {
            try admin.execute("DROP ROLE \(role)")
        } catch {
            faults.append("\(error)")
        }
        admin.close()
        faults += server.faults
        return faults.isEmpty ? [] : faults.map { "!! \($0)" } + history
    }

    private func live() throws {
        try expect([], "before")
        var left: [(setup: WrongSetup, number: Int)] = []
        for number in 0..<Self.count {
            let setup = chance.one(of: WrongSetup.all)
            let isTwice = left.contains {
                !setup.sql.contains("items#")
                    && ($0.setup.undo == setup.undo || $0.setup.words == setup.words)
                    // Nothing can be wrong with a publication that is gone.
                    || setup.isOfPublication && $0.setup.isOfPublication
                        && (setup.drops || $0.setup.drops)
            }
            guard !isTwice, setup.capture.map({ $0 == server.capture }) ?? true else { continue }
            left.append((setup, number))
        }
        left.sort { !$0.setup.isLast && $1.setup.isLast }
        for (setup, number) in left where !setup.isLast { try make(setup, number) }
        let doctor = try inspector()
        defer { doctor.close() }
        for (setup, number) in left where setup.isLast { try make(setup, number) }
        try expect(left, "at once", doctor)
        // What is mended is no longer found.
        left.shuffle(using: &chance)
        if left.contains(where: { $0.setup.isNoticed || $0.setup.sql.contains("IDENTITY") }) {
            // The server puts nothing right while it cannot take the tables up, or while the log would
            // not say which rows are changed.
            let undone = { (words: String) in left.filter { $0.setup.undo.hasPrefix(words) } }
            left =
                undone("-- adopt") + undone("-- read")
                + left.filter { !$0.setup.undo.hasPrefix("-- ") }
        }
        // An adoption mends the publication, too.
        left =
            left.filter { $0.setup.undo.hasPrefix("-- adopt") }
            + left.filter { !$0.setup.undo.hasPrefix("-- adopt") }
        left = left.filter { !$0.setup.isLast } + left.filter(\.setup.isLast)
        while let (setup, number) = left.popLast() {
            try undo(setup, number)
            // A server that reads mends all that is wrong with its slot and its publication.
            if setup.undo == "-- read" { left.removeAll { $0.setup.undo == "-- read" } }
            if left.contains(where: \.setup.isLast) {
                try expect(left, "after \(setup.undo)", doctor)
                continue
            }
            let again = try inspector()
            defer { again.close() }
            try expect(left, "after \(setup.undo)", again)
        }
    }

    private func inspector() throws -> PostgresConnection {
        try PostgresConnection(
            server.owner.setting("user", role), PostgresOptions(statement: nil, lock: nil))
    }

    private func make(_ setup: WrongSetup, _ number: Int) throws {
        let sql = try named(setup.sql, number)
        if sql.contains("PUBLICATION") || sql.contains("slot") { server.stopReading() }
        if sql.hasPrefix("-- drop the slot"), let state = try LogicalState.read(admin) {
            try LogicalSlot(on: admin).drop(state.slot)
        } else {
            try admin.execute(sql)
        }
        history.append(sql)
        guard setup.isNoticed else { return }
        let before = server.sentences.count
        server.look()
        let words = try named(setup.words, number)
        let new = server.sentences.dropFirst(before) + [server.unreadyReason].compactMap(\.self)
        if !new.contains(where: { $0.contains(words) }) {
            faults.append("the server that runs does not say “\(words)”: \(Array(new))")
        }
    }

    private func undo(_ setup: WrongSetup, _ number: Int) throws {
        let sql = try named(setup.undo, number)
        history.append(sql)
        if sql.hasPrefix("-- adopt") {
            try server.adopt(.init(name: "team", tables: ["items\(number)"]))
        } else if sql.hasPrefix("-- read") {
            server.read()
            server.look()
            try server.converge()
            server.stopReading()
        } else {
            try admin.execute(sql)
        }
    }

    /// That each of what is wrong is found, and nothing else.
    private func expect(
        _ left: [(setup: WrongSetup, number: Int)], _ when: String,
        _ doctor: PostgresConnection? = nil
    ) throws {
        let all = try PostgresDoctor(on: doctor ?? server.connection, now: 0).findings()
            .filter { !["index", "clock"].contains($0.check) }
        var found = all
        for (setup, number) in left {
            let words = try named(setup.words, number)
            func tells(_ finding: PostgresDoctor.Finding) -> Bool {
                finding.check == setup.check && finding.what.contains(words)
            }
            found.removeAll(where: tells)
            if !all.contains(where: tells) {
                faults.append("\(when): the doctor does not say “\(words)” (\(setup.check))")
            }
        }
        let isOwn = { (what: String) in
            what.contains("Nobody reads the replication slot")
        }
        for finding in found where !isOwn(finding.what) && !follows(finding, left) {
            faults.append("\(when): the doctor says \(finding.check): \(finding.what)")
        }
    }

    /// Whether a finding is another side of something that is wrong.
    private func follows(
        _ finding: PostgresDoctor.Finding, _ left: [(setup: WrongSetup, number: Int)]
    ) -> Bool {
        left.contains { setup, number in
            finding.check == setup.check && (setup.check == "triggers" || setup.check == "slots")
                || setup.sql.contains("OWNER TO") && finding.what.contains("items\(number)")
        }
    }
}

@Suite("Data sets that are set up wrongly")
struct WrongSetupTests {
    private static let worlds =
        ProcessInfo.processInfo.environment["MARTLET_SETUP_WORLDS"].flatMap(UInt64.init) ?? 6
    private static let first =
        ProcessInfo.processInfo.environment["MARTLET_SETUP_SEED"].flatMap(UInt64.init) ?? 0

    @Test(
        "the doctor, and a server that runs, name all that is wrong and nothing else",
        arguments: ExternalCapture.allCases)
    func worldsOfWrongSetups(_ capture: ExternalCapture) async throws {
        let servers = try await capture == .logical ? DatabaseServers.logical() : .shared()
        for seed in Self.first..<Self.first + Self.worlds {
            try await TestDatabase.blocking {
                let faults = try MisconfiguredWorld(servers, capture, seed: seed).run()
                #expect(
                    faults.isEmpty, "\(capture), seed \(seed)\n\(faults.joined(separator: "\n"))")
            }
        }
    }
}
