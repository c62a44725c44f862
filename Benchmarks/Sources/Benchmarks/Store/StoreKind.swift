import Martlet
import MartletStore

/// The kind of database that has the rows.
enum StoreKind: String, CaseIterable {
    /// A database of the app's own.
    case pool = "pool"
    /// A file that is kept in step: triggers note each row, and each save makes a change set.
    case client = "client with capture"

    func open(_ path: String, schema: String) async throws -> any DatabaseAccess {
        switch self {
        case .pool:
            let pool = try await DatabasePool.open(path: path)
            try await pool.write { _ = try $0.rows(schema) }
            return pool
        case .client:
            return try await MartletClient.open(path: path, schema: schema, transport: nil)
        }
    }

    func close(_ database: any DatabaseAccess) async {
        await (database as? DatabasePool)?.close()
        await (database as? MartletClient)?.close()
    }

    /// The transactions many rows are written in: a change set has a limit.
    func parts(of rows: Int) -> [Range<Int>] {
        let size = self == .pool ? rows : 20_000
        return stride(from: 0, to: rows, by: size).map { $0..<min($0 + size, rows) }
    }
}
