import MartletModel
import MartletStore
import MartletTesting
import Synchronization

/// One that observes a table or a record, and what it has been shown last.
final class AppObserver: Sendable {
    let name: String
    private let fetch: @Sendable (ReadContext) throws -> String
    private let shown = Mutex<String?>(nil)
    private let task = Mutex<Task<Void, Never>?>(nil)

    var last: String? { shown.withLock { $0 } }

    /// Observes all rows of a table.
    convenience init(rowsOf table: RandomTable, in database: any DatabaseAccess) {
        let columns = ([table.quotedKey] + table.columns.map(\.quoted)).map { "quote(\($0))" }
        let select =
            "SELECT \(columns.joined(separator: " || '|' || ")) FROM \(table.quoted) ORDER BY 1"
        self.init("\(table.name)") { context in
            "\(try context.rows(select).map(\.values))"
        }
        follow(database.observe(fetch))
    }

    /// Observes one record, which may not be there.
    convenience init(record key: SQLValue, of table: RandomTable, in database: any DatabaseAccess) {
        let plain = PlainTable(table.name)
        let find: @Sendable (ReadContext) throws -> RecordValues? = { context in
            switch key {
            case .integer(let number): try plain.find(number, in: context)
            case .text(let text): try plain.find(text, in: context)
            default: nil
            }
        }
        self.init("\(table.name) \(key)") { context in
            "\(String(describing: try find(context)))"
        }
        follow(database.observe(fetch))
    }

    private init(_ name: String, fetch: @escaping @Sendable (ReadContext) throws -> String) {
        self.name = name
        self.fetch = fetch
    }

    private func follow(_ values: DatabaseObservation<String>) {
        let running = Task { [weak self] in
            do {
                for try await value in values { self?.shown.withLock { $0 = value } }
            } catch {
                self?.shown.withLock { $0 = "\(error)" }
            }
        }
        task.withLock { $0 = running }
    }

    func stop() { task.withLock { $0?.cancel() } }

    /// What is there now.
    func fresh(_ database: any DatabaseAccess) async throws -> String {
        try await database.read(fetch)
    }
}
