internal import CPostgres
public import ConnectionKit

/// What NOTIFY said.
public struct PostgresNotification: Hashable, Sendable {
    public let channel: String
    public let payload: String
    /// The server's process of whoever said it.
    public let processNumber: Int32
}

extension PostgresConnection {
    /// Hears what is said on a channel from now on.
    public func listen(_ channel: String) throws(PostgresError) {
        _ = try query("LISTEN \(Self.quoted(channel))")
    }

    /// Says something to all who listen, once the open transaction commits.
    public func notify(_ channel: String, _ payload: String) throws(PostgresError) {
        _ = try query("SELECT pg_catalog.pg_notify($1, $2)", [.text(channel), .text(payload)])
    }

    /// Waits for notifications.
    /// - Parameter limit: nil to wait until something is said or `wake` is signalled.
    /// - Returns: Those that have come; none when the time is over.
    public func notifications(within limit: Duration?) throws(PostgresError)
        -> [PostgresNotification]
    {
        try check()
        var heard = takeNotifications()
        guard heard.isEmpty else { return heard }
        wire.begin(mayCommit: false)
        if try wire.listen(limit) {
            guard PQconsumeInput(wire.pointer) == 1 else { throw wire.lost() }
            _ = PQisBusy(wire.pointer)
            heard = takeNotifications()
        }
        return heard
    }

    private func takeNotifications() -> [PostgresNotification] {
        var heard: [PostgresNotification] = []
        while let notice = PQnotifies(wire.pointer) {
            heard.append(
                PostgresNotification(
                    channel: String(cString: notice.pointee.relname),
                    payload: String(cString: notice.pointee.extra),
                    processNumber: notice.pointee.be_pid))
            PQfreemem(notice)
        }
        return heard
    }

    /// A name as SQL takes it, whatever is in it.
    public static func quoted(_ name: String) -> String {
        "\"\(name.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false).map { String($0) }.joined(separator: "\"\""))\""
    }

    /// Listens on a connection of its own, made again whenever it is lost.
    /// - Returns: Events; see `Listening.events`.
    public static func notifications(
        _ address: PostgresAddress, channels: [String],
        options: PostgresOptions = PostgresOptions(), pace: Pace = .system
    ) -> AsyncStream<ListeningEvent<PostgresNotification>> {
        Listening.events(
            label: "martlet.postgres.listen", pace: pace,
            make: {
                let connection = try PostgresConnection(address, options)
                for channel in channels { try connection.listen(channel) }
                return connection
            }, next: { try $0.notifications(within: $1) })
    }
}
