import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletStore
import Synchronization

/// A device to be killed: writes numbered marks as fast as its outbox empties, keeps in step with
/// the server, and says on standard output what was saved, after it was saved.
///
///     TestDevice FILE SCHEMA SERVER TOKEN WRITER
///
/// When standard input ends it stops writing, sends what is left, says `done` and ends.
@main
final class TestDevice: Sendable {
    private let client: MartletClient
    private let writer: Int64
    private let isFinishing = Mutex(false)

    /// Change sets in the outbox beyond which it waits before it writes.
    private static let outboxLimit = 8
    /// Exchanges that may fail in a row once it is to end.
    private static let lastTries = 100

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 6, let server = URL(string: arguments[3]),
            let writer = Int64(arguments[5])
        else {
            FileHandle.standardError.write(
                Data("TestDevice takes FILE SCHEMA SERVER TOKEN WRITER.\n".utf8))
            exit(64)
        }
        var options = ClientOptions()
        options.node.backoff.first = 20
        options.node.backoff.longest = 200
        let client = try await MartletClient.open(
            path: arguments[1], schema: String(contentsOfFile: arguments[2], encoding: .utf8),
            server: server, token: arguments[4], options: options)
        say("opened")
        let device = TestDevice(client: client, writer: writer)
        try await withThrowingTaskGroup { group in
            group.addTask { await device.reportExchanges() }
            group.addTask { try await device.run() }
            try await group.waitForAll()
        }
        say("done")
    }

    private init(client: MartletClient, writer: Int64) {
        self.client = client
        self.writer = writer
    }

    /// One line, in one system call: a kill leaves all of it or nothing.
    private static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }

    private func reportExchanges() async {
        for await event in client.events {
            if case .reached(let revision) = event { Self.say("reached \(revision)") }
        }
    }

    private func run() async throws {
        Thread.detachNewThread {
            _ = try? FileHandle.standardInput.readToEnd()
            self.isFinishing.withLock { $0 = true }
        }
        client.start()
        var (last, number) = try await newest()
        while !isFinishing.withLock(\.self) {
            guard try await client.status().outbox < Self.outboxLimit else {
                _ = try? await client.sync()
                continue
            }
            number += 1
            last = try await save(number, after: last)
            Self.say("saved \(number)")
        }
        try await finish()
    }

    /// What the file has of this writer.
    private func newest() async throws -> (id: RecordID?, number: Int64) {
        let writer = writer
        let row = try await client.read { context in
            try context.rows(
                "SELECT id, number FROM marks WHERE writer = ? ORDER BY number DESC LIMIT 1",
                [.integer(writer)]
            ).first
        }
        guard let row, let id = row["id"], case .integer(let number)? = row["number"] else {
            return (nil, 0)
        }
        return (RecordID(id), number)
    }

    /// One change set: a mark, a note that refers to it, and an edit of the mark before, whose own
    /// set may still be on its way.
    private func save(_ number: Int64, after last: RecordID?) async throws -> RecordID {
        let writer = writer
        return try await client.write { context in
            let mark = try context.insert(
                "marks", ["writer": .integer(writer), "number": .integer(number), "edits": 0])
            try context.insert("notes", ["mark": mark.sqlValue, "number": .integer(number)])
            if let last, try !context.update("marks", last, ["edits": 1]) {
                throw MissingMark(number: number - 1)
            }
            return mark
        }
    }

    private func finish() async throws {
        var failures = 0
        while try await client.status().outbox > 0 {
            do {
                try await client.sync()
                failures = 0
            } catch {
                failures += 1
                if failures == Self.lastTries { throw error }
            }
        }
        await client.close()
    }
}

/// A mark that was saved is not in the file any more.
private struct MissingMark: Error {
    let number: Int64
}
