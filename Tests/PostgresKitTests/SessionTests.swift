import ConnectionKit
import PostgresKit
import Synchronization
import TestDatabases
import Testing

@Suite("Sessions")
struct SessionTests {
    private func session(_ options: PostgresOptions = PostgresOptions()) async throws
        -> PostgresSession
    {
        let address = try await TestServer.address()
        return PostgresSession(label: "test") { try PostgresConnection(address, options) }
    }

    /// The wait of a statement is over when the server says that it waits.
    private func untilWaiting(_ number: Int32) async throws {
        while true {
            let waits = try await TestServer.connected { connection in
                try connection.query(
                    """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE pid = $1 AND state = 'active' AND wait_event = 'PgSleep'
                    """, [.integer(Int64(number))]
                ).integer(0, 0)
            }
            if waits == 1 { return }
        }
    }

    @Test("a cancelled task stops its statement, and the next one runs", .timeLimit(.minutes(1)))
    func cancellation() async throws {
        let session = try await session()
        let number = try await session.run { $0.processNumber }
        let task = Task {
            try await session.run { connection in
                _ = try connection.query("SELECT pg_sleep(600)")
            }
        }
        try await untilWaiting(number)
        task.cancel()
        let error = await #expect(throws: PostgresError.self) { try await task.value }
        #expect(error?.kind == .cancelled)
        let (after, answer) = try await session.run { connection in
            (connection.processNumber, try connection.query("SELECT 1").integer(0, 0))
        }
        #expect(after == number && answer == 1)
    }

    @Test("one that the server ended in between is made again unseen")
    func terminated() async throws {
        let session = try await session()
        let number = try await session.run { $0.processNumber }
        try await TestServer.connected { connection in
            _ = try connection.query(
                "SELECT pg_terminate_backend($1, 10000)", [.integer(Int64(number))])
        }
        let after = try await session.run { connection in
            _ = try connection.query("SELECT 1")
            return connection.processNumber
        }
        #expect(after != number)
        #expect(await session.connectionsMade == 2)
    }

    @Test("one that the server ends under a statement says what is known", .timeLimit(.minutes(1)))
    func terminatedUnder() async throws {
        for (begin, kind) in [(false, PostgresError.Kind.unknownOutcome), (true, .restarting)] {
            let session = try await session()
            let number = try await session.run { $0.processNumber }
            let task = Task {
                try await session.run { connection in
                    if begin { try connection.begin() }
                    _ = try connection.query("SELECT pg_sleep(600)")
                }
            }
            try await untilWaiting(number)
            try await TestServer.connected { connection in
                _ = try connection.query(
                    "SELECT pg_terminate_backend($1)", [.integer(Int64(number))])
            }
            let error = await #expect(throws: PostgresError.self) { try await task.value }
            #expect(error?.kind == kind)
            #expect(error?.sqlState == "57P01")
            #expect(error?.endsConnection == true)
            #expect(try await session.run { try $0.query("SELECT 1").integer(0, 0) } == 1)
        }
    }

    @Test("work that left a transaction open does not hand it to the next")
    func leftOpen() async throws {
        let session = try await session()
        try await session.run { try $0.begin() }
        #expect(try await session.run { $0.isInTransaction } == false)
    }

    @Test("plans are not compiled, which PostgreSQL does otherwise")
    func planCompilation() async throws {
        let settings = try await TestServer.connected { connection in
            let row = try connection.query(
                "SELECT boot_val, setting FROM pg_catalog.pg_settings WHERE name = 'jit'")
            return [try row.text(0, 0), try row.text(0, 1)]
        }
        #expect(settings == ["on", "off"])
    }
}

@Suite("Notifications")
struct NotificationTests {
    @Test("are heard once their transaction commits, in order", .timeLimit(.minutes(1)))
    func orderOfNotifications() async throws {
        let channel = TestServer.name("Channel \"x\"")
        let heard = try await TestServer.connected { listener in
            try listener.listen(channel)
            let speaker = try PostgresConnection(listener.address)
            try speaker.transaction {
                try speaker.notify(channel, "one")
                try speaker.notify(channel, "Ž two")
                #expect(try listener.notifications(within: .milliseconds(20)).isEmpty)
            }
            var heard: [String] = []
            while heard.count < 2 {
                heard += try listener.notifications(within: nil).map(\.payload)
            }
            return heard
        }
        #expect(heard == ["one", "Ž two"])
    }

    @Test("are heard again after the connection was lost", .timeLimit(.minutes(1)))
    func lostConnection() async throws {
        let channel = TestServer.name("channel")
        let address = try await TestServer.address()
        let options = PostgresOptions(name: channel)
        var events: [String] = []
        for await event in PostgresConnection.notifications(
            address, channels: [channel], options: options)
        {
            switch event {
            case .listening:
                events.append("listening")
                let word = events.count == 1 ? "one" : "two"
                try await TestServer.connected { try $0.notify(channel, word) }
            case .message(let message):
                events.append(message.payload)
                if message.payload == "one" {
                    try await TestServer.connected { connection in
                        _ = try connection.query(
                            """
                            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                            WHERE application_name = $1
                            """, [.text(channel)])
                    }
                }
            case .lost: events.append("lost")
            }
            if events.last == "two" { break }
        }
        #expect(events == ["listening", "one", "lost", "listening", "two"])
    }
}
