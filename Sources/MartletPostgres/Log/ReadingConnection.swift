import MartletServerCore
import PostgresKit

/// A connection that only reads. It is made when it is first needed, and again after it was lost.
final class ReadingConnection {
    /// The statements that set a session of this kind up.
    private let settings: String
    private let connect: () throws(PostgresError) -> PostgresConnection
    private var current: (connection: PostgresConnection, model: PostgresModel)?

    /// Makes a connection that does not connect yet.
    /// - Parameters:
    ///   - settings: The statements to run on every new connection.
    ///   - connect: Makes a connection.
    init(
        settings: String, connect: @escaping () throws(PostgresError) -> PostgresConnection
    ) {
        self.settings = settings
        self.connect = connect
    }

    /// Returns a function that makes connections that only read.
    static func maker(
        _ address: PostgresAddress, _ options: PostgresOptions
    ) -> () throws(PostgresError) -> PostgresConnection {
        var options = options
        options.readOnly = true
        return { [options] () throws(PostgresError) in try PostgresConnection(address, options) }
    }

    /// Runs `body` with a connection that answers and its model of the tables. `body` may run a
    /// second time on a new connection, so it must only read.
    func reading<Result>(
        _ body: (PostgresConnection, PostgresModel) throws(PostgresError) -> Result
    ) throws(StorageFault) -> Result {
        let wasOpen = current != nil
        do throws(PostgresError) {
            return try once(body)
        } catch {
            guard wasOpen, error.endsConnection || error.kind == .stalePlan else {
                throw StorageFault(error)
            }
        }
        do throws(PostgresError) {
            return try once(body)
        } catch {
            throw StorageFault(error)
        }
    }

    private func once<Result>(
        _ body: (PostgresConnection, PostgresModel) throws(PostgresError) -> Result
    ) throws(PostgresError) -> Result {
        do throws(PostgresError) {
            if let current, current.connection.isUsable() {
                return try body(current.connection, current.model)
            }
            current?.connection.close()
            current = nil
            let connection = try connect()
            try connection.execute(settings)
            let model = try PostgresModel(on: connection)
            current = (connection, model)
            return try body(connection, model)
        } catch {
            // After any error, a new connection starts from the database's state.
            current?.connection.close()
            current = nil
            throw error
        }
    }
}

@available(*, unavailable)
extension ReadingConnection: Sendable {}
