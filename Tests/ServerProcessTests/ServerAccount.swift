import Foundation
import Martlet
import MartletModel
import MartletProtocol
import MartletStore

/// What the server has, asked for with bare requests from revision 0 on.
struct ServerAccount {
    /// The newest revision.
    private(set) var revision: Revision = 0
    /// How many records with a writer and a number were created.
    private(set) var marks: [Mark: Int] = [:]

    struct Mark: Hashable, Comparable, CustomStringConvertible {
        var writer: Int64
        var number: Int64

        var description: String { "\(writer)/\(number)" }

        static func < (left: Mark, right: Mark) -> Bool {
            (left.writer, left.number) < (right.writer, right.number)
        }
    }

    /// A gap, a repetition, or an answer that is none.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    /// - Throws: `Broken` where the revisions are not 1, 2, 3 and so on.
    init(of server: URL, token: String) async throws {
        let transport = try URLSessionTransport(server: server, token: token)
        while true {
            let request = try SyncCoder.encode(SyncRequest(maxRevision: revision))
            let answer = try await transport.exchange(request)
            guard answer.status == 200 else {
                throw Broken(description: "The server answers with \(answer.status).")
            }
            let page = try SyncCoder.decodeAnswer(answer.body)
            for set in page.changeSets { try take(set) }
            guard page.maxRevision == revision else {
                throw Broken(description: "\(page.maxRevision) was promised, \(revision) reached.")
            }
            if !page.more { return }
        }
    }

    private mutating func take(_ set: ChangeSet) throws {
        guard set.revision == revision + 1 else {
            throw Broken(description: "\(set.revision ?? 0) follows \(revision).")
        }
        revision += 1
        for type in set.types where type.name == "marks" {
            for entry in type.entries where type.create.contains(entry.id) {
                guard case .integer(let writer)? = entry.attributes["writer"],
                    case .integer(let number)? = entry.attributes["number"]
                else { throw Broken(description: "A mark came without its number.") }
                marks[Mark(writer: writer, number: number), default: 0] += 1
            }
        }
    }
}

extension MartletClient {
    /// How many records with a writer and a number this device has.
    func marks() async throws -> [ServerAccount.Mark: Int] {
        let rows = try await read { try $0.rows("SELECT writer, number FROM marks") }
        var marks: [ServerAccount.Mark: Int] = [:]
        for row in rows {
            guard case .integer(let writer)? = row["writer"],
                case .integer(let number)? = row["number"]
            else { continue }
            marks[ServerAccount.Mark(writer: writer, number: number), default: 0] += 1
        }
        return marks
    }

    /// The first number a query gives.
    func count(_ sql: String) async throws -> Int64 {
        let row = try await read { try $0.rows(sql).first }
        guard case .integer(let count)? = row?.values.first else { return -1 }
        return count
    }

    /// Exchanges until nothing is queued.
    /// - Throws: The last failure, once as many exchanges as are allowed have failed in a row.
    func converge(failures allowed: Int = 100) async throws {
        var failures = 0
        repeat {
            do {
                try await sync()
                failures = 0
            } catch {
                failures += 1
                if failures > allowed { throw error }
            }
        } while try await status().outbox > 0
    }
}
