import Foundation
import Testing

/// What a data set is kept in.
enum StorageKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// SQLite on a disk in memory.
    case memory
    case file
    case postgres
    case postgresAndRedis

    /// All of them, or those named by `MARTLET_STORAGES`, parted by commas.
    static let all: [StorageKind] = {
        guard let named = ProcessInfo.processInfo.environment["MARTLET_STORAGES"] else {
            return allCases
        }
        return named.split(separator: ",").compactMap { StorageKind(rawValue: String($0)) }
    }()

    /// Those on SQLite.
    static let embedded = all.filter { !$0.isPostgres }

    var testDescription: String { rawValue }

    /// Whether it speaks PostgreSQL's dialect.
    var isPostgres: Bool { self == .postgres || self == .postgresAndRedis }
}
