internal import CPostgres
public import ConnectionKit

/// A notification that NOTIFY sent.
public struct PostgresNotification: Hashable, Sendable {
    public let channel: String
    public let payload: String
    /// The number of the server process whose session sent the notification.
    public let processNumber: Int32
}

extension PostgresConnection {
    /// Subscribes to the notifications of a channel.
    /// - Throws: `PostgresError` if the statement fails or the connection is lost.
    public func listen(_ channel: String) throws(PostgresError) {
        _ = try query("LISTEN \(Self.quoted(channel))")
    }

    /// Notifies all listeners of a channel, when the open transaction commits.
    /// - Throws: `PostgresError` if the statement fails or the connection is lost.
    public func notify(_ channel: String, _ payload: String) throws(PostgresError) {
        _ = try query("SELECT pg_catalog.pg_notify($1, $2)", [.text(channel), .text(payload)])
    }

    /// Waits for notifications on the subscribed channels.
    /// - Parameter limit: The time to wait; nil to wait until a notification arrives or `wake` is
    ///   signalled.
    /// - Returns: The notifications that have arrived; none if the time is over.
    /// - Throws: `PostgresError` if the connection is closed or lost.
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

    /// Returns a name in double quotes as SQL reads it, whatever characters it has.
    public static func quoted(_ name: String) -> String {
        "\"\(name.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false).map { String($0) }.joined(separator: "\"\""))\""
    }

    /// Listens on a separate connection, and reconnects whenever that connection is lost.
    /// - Returns: The events, as `Listening.events` describes them.
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
