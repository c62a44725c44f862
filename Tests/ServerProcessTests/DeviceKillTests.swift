import Foundation
import Martlet
import MartletModel
import MartletProtocol
import TestPrograms
import Testing

/// Real device programs, killed with SIGKILL while they write and exchange.
@Suite("A device that is killed", .timeLimit(KillCount.limit(minutes: 5)))
struct DeviceKillTests {
    private static let devices = 2
    private static let killsEach = KillCount.kills(50) / devices

    @Test("50 kills with a queue: what was reported as saved is on the server exactly once")
    func nothingIsLost() async throws {
        let server = try ServerProcess()
        try await server.start()
        let address = try await server.address
        let reported = try await withThrowingTaskGroup(of: [ServerAccount.Mark].self) { group in
            for writer in 1...Self.devices {
                group.addTask {
                    try await Self.run(server, address, writer: writer)
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        print(
            """
            \(Self.killsEach * Self.devices) kills of devices, \(reported.count) change sets \
            reported as saved
            """)
        try await check(server, address, reported: reported)
        #expect(await server.stop() == 0)
    }

    /// Runs a device over and over on one file, killing it, and at last lets it finish.
    /// - Returns: What it reported as saved.
    private static func run(
        _ server: ServerProcess, _ address: URL, writer: Int
    ) async throws -> [ServerAccount.Mark] {
        var reported: [ServerAccount.Mark] = []
        for kill in 1...killsEach + 1 {
            let device = try RunningProgram(
                RunningProgram.path("TestDevice", override: "TEST_DEVICE_EXECUTABLE"),
                [
                    server.file("device-\(writer)"), server.schemaFile.path, address.absoluteString,
                    ServerProcess.token, String(writer),
                ], log: server.folder.appendingPathComponent("device-\(writer).log"))
            // Saves and exchanges are reported as they happen, so any number of lines ends at any
            // moment of either; after none it is still opening its file.
            let isLast = kill > killsEach
            let limit = isLast ? 1 : Int.random(in: 0...60)
            if limit == 0 { device.kill() }
            var lines = 0
            var last = ""
            for await line in device.lines {
                if line.hasPrefix("saved "), let number = Int64(line.dropFirst(6)) {
                    reported.append(ServerAccount.Mark(writer: Int64(writer), number: number))
                }
                last = line
                lines += 1
                if lines == limit { isLast ? device.closeInput() : device.kill() }
            }
            let status = await device.end()
            #expect(isLast ? last == "done" && status == 0 : status == 9)
        }
        return reported
    }

    private func check(
        _ server: ServerProcess, _ address: URL, reported: [ServerAccount.Mark]
    ) async throws {
        let account = try await ServerAccount(of: address, token: ServerProcess.token)
        #expect(Set(reported).count == reported.count, "no number was used twice")
        #expect(
            Set(reported).subtracting(account.marks.keys).sorted() == [], "saved, and then lost")
        #expect(account.marks.filter { $0.value != 1 }.isEmpty, "applied more than once")
        // A save that was committed but not yet reported when the kill came is there as well, so
        // the numbers have no gaps: nothing was undone.
        for writer in 1...Int64(Self.devices) {
            let numbers = account.marks.keys.filter { $0.writer == writer }.map(\.number).sorted()
            #expect(numbers == Array(1...Int64(numbers.count)))
        }
        #expect(account.revision == Revision(account.marks.count))
        // Otherwise no kill fell between acceptance and answer, and the test showed nothing.
        #expect(try await server.setsReceived() > account.marks.count, "no set came twice")

        for name in (1...Self.devices).map({ "device-\($0)" }) + ["fresh"] {
            let client = try await server.client(name)
            try await client.converge()
            #expect(try await client.marks() == account.marks, "\(name) differs")
            #expect(try await client.status().parked == 0)
            // Each mark has its note, and all but the newest of each writer their edit.
            let total = Int64(account.marks.count)
            #expect(
                try await client.count(
                    "SELECT count(*) FROM notes JOIN marks ON marks.id = mark"
                        + " WHERE marks.number = notes.number") == total)
            #expect(
                try await client.count("SELECT count(*) FROM marks WHERE edits = 1")
                    == total - Int64(Self.devices))
            await client.close()
        }
    }
}
