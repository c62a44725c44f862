import Foundation
import PostgresKit
import Synchronization
import TestDatabases

/// How a world's commits wait for a standby that shows everything an hour late.
enum StandbyWaits {
    case none
    /// Those of some programs wait until the world lets them go on.
    case held
    /// All wait, also the server's, and somebody cancels each wait.
    case cancelled
}

/// A program on a thread of its own whose commit waits for the standby.
final class CommitWaiter: Sendable {
    private let address: PostgresAddress
    /// The session's process, once it has begun.
    private let process = Mutex<Int64?>(nil)
    private let isEnded = Mutex(false)
    private let ended = DispatchSemaphore(value: 0)

    /// Has the program run statements, and waits until it fails or waits in its commit.
    init(_ address: PostgresAddress, _ sql: String) throws {
        self.address = address
        Thread.detachNewThread { [self] in
            try? run(sql)
            isEnded.withLock { $0 = true }
            ended.signal()
        }
        let look = try PostgresConnection(address)
        defer { look.close() }
        while !isEnded.withLock(\.self) {
            if let waits, try look.query("SELECT count(*) \(waits)").integer(0, 0) > 0 { break }
            _ = try look.query("SELECT pg_sleep(0.002)")
        }
    }

    private func run(_ sql: String) throws {
        let program = try PostgresConnection(address, PostgresOptions(answer: nil, name: "waiter"))
        defer { program.close() }
        try program.execute(
            "SET synchronous_commit = remote_apply; SET lock_timeout = 5; SET statement_timeout = 5000"
        )
        let own = try program.query("SELECT pg_backend_pid()::bigint").integer(0, 0)
        process.withLock { $0 = own }
        try program.execute(sql)
    }

    private var waits: String? {
        process.withLock(\.self).map {
            "FROM pg_stat_activity WHERE pid = \($0) AND wait_event = 'SyncRep'"
        }
    }

    /// Has its rows show, and waits until it is over.
    func end() {
        if let waits, let look = try? PostgresConnection(address) {
            _ = try? look.query("SELECT pg_cancel_backend(pid) \(waits)")
            look.close()
        }
        ended.wait()
    }

    /// Has commits wait for the standby.
    static func awaitStandby(_ servers: DatabaseServers) throws {
        let admin = try PostgresConnection(try PostgresAddress(servers.postgresURL))
        defer { admin.close() }
        try admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        try admin.execute("SELECT pg_reload_conf()")
        let isWaitedFor = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        while try admin.query(isWaitedFor).integer(0, 0) == 0 {
            _ = try admin.query("SELECT pg_sleep(0.02)")
        }
    }
}

/// Somebody who cancels every wait for the standby, while that is wanted.
final class CommitCanceller: Sendable {
    private let state = Mutex((isOn: false, isEnded: false))
    private let ended = DispatchSemaphore(value: 0)

    init(_ address: PostgresAddress) {
        Thread.detachNewThread { [self] in
            let admin = try? PostgresConnection(address)
            while !state.withLock(\.isEnded) {
                let cancel =
                    state.withLock(\.isOn)
                    ? "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep';"
                    : ""
                try? admin?.execute("\(cancel) SELECT pg_sleep(0.001)")
            }
            admin?.close()
            ended.signal()
        }
    }

    var isOn: Bool {
        get { state.withLock(\.isOn) }
        set { state.withLock { $0.isOn = newValue } }
    }

    func end() {
        state.withLock { $0.isEnded = true }
        ended.wait()
    }
}

extension SmallServer {
    /// Has all sessions that begin from now on wait in their commits.
    func waitAlways() throws {
        let admin = try program()
        defer { admin.close() }
        try admin.execute("SET synchronous_commit = local")
        try admin.execute(
            "ALTER DATABASE \(owner["dbname"] ?? "") SET synchronous_commit = remote_apply")
    }
}
