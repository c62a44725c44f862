package import MartletModel
internal import MartletProtocol

/// All that a server has of a data set, as text, one fact on a line: the rows of its tables with their
/// revisions and authors, the log, the permanent ids of temporary ones, the refused sets and the devices.
/// Equal data sets have equal texts, on any storage. Times and hashes are left out.
///
/// An attribute that a row lacks is null. Only this type reads Martlet's own tables for tests.
package struct ServerText {
    let schema: Schema
    /// Runs a query: rows as lines, columns parted by bars, nulls as dashes.
    let query: (String) throws -> String

    package init(_ schema: Schema, query: @escaping (String) throws -> String) {
        self.schema = schema
        self.query = query
    }

    /// - Throws: What the query throws.
    package func text() throws -> String {
        let devices = try names("SELECT number, client_id FROM martlet_devices")
            .merging(["0": "nobody"]) { $1 }
        let types = try names("SELECT number, name FROM martlet_types")
        return try (tables(devices, types) + log(devices) + others(devices, types))
            .joined(separator: "\n")
    }

    private func rows(_ sql: String) throws -> [[String]] {
        try query(sql).split(separator: "\n").map {
            $0.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// Names by numbers.
    private func names(_ sql: String) throws -> [String: String] {
        Dictionary(try rows(sql).map { ($0[0], $0[1]) }) { $1 }
    }

    /// The rows of the tables, and the records that were deleted.
    private func tables(
        _ devices: [String: String], _ types: [String: String]
    ) throws -> [String] {
        var facts: [String: String] = [:]
        for row in try rows(
            "SELECT type, id, revision, author, others, deleted FROM martlet_records")
        {
            let others = row[4] == "0" ? "" : ", by others @\(row[4])"
            facts["\(types[row[0]] ?? row[0]) \(row[1])"] =
                " @\(row[2]) by \(devices[row[3]] ?? row[3])\(others)\(row[5] == "1" ? ", deleted" : "")"
        }
        var lines: [String] = []
        for type in schema.types {
            let columns = type.attributes.map(\.name)
            let names = ([type.key] + columns).map { "\"\($0)\"" }.joined(separator: ", ")
            for row in try rows("SELECT \(names) FROM \"\(type.name)\" ORDER BY 1") {
                let values = zip(columns, row.dropFirst()).filter { $1 != "-" }
                    .map { "\($0) \($1)" }.joined(separator: ", ")
                let record = "\(type.name) \(row[0])"
                let fact = facts.removeValue(forKey: record) ?? ""
                lines.append(record + fact + (values.isEmpty ? "" : ": \(values)"))
            }
        }
        return lines + facts.map { $0 + $1 }.sorted()
    }

    private func log(_ devices: [String: String]) throws -> [String] {
        try rows(
            "SELECT revision, device, identifier, sequence, hex(body), temporaries FROM martlet_log"
                + " ORDER BY revision"
        ).flatMap { row in
            let name = "log \(row[0]), \(Self.name(row[2], row[3], of: devices[row[1]] ?? row[1]))"
            guard row[4].isEmpty else {
                return try Self.set(row[4]).types.map { "\(name): \($0.content)" }
            }
            return ["\(name): \(row[5] == "-" ? "emptied" : "without its body")"]
        }
    }

    private func others(
        _ devices: [String: String], _ types: [String: String]
    ) throws -> [String] {
        let ids = try rows(
            "SELECT device, type, temporary, id FROM martlet_ids ORDER BY device, type, temporary DESC"
        ).map { row in
            let type = types[row[1]] ?? row[1]
            return "\(type) \(row[2]) of \(devices[row[0]] ?? row[0]) is \(row[3])"
        }
        let refused = try rows(
            "SELECT device, sequence, identifier, reason FROM martlet_refusals ORDER BY number"
        ).map { row in
            "refused, \(Self.name(row[2], row[1], of: devices[row[0]] ?? row[0])): \(row[3])"
        }
        let known = try rows("SELECT client_id, acknowledged FROM martlet_devices ORDER BY number")
            .map { "device \($0[0])\($0[1] == "0" ? "" : ", has the answers up to \($0[1])")" }
        return ids + refused + known
    }

    /// A set, by its identifier and its sequence.
    private static func name(_ identifier: String, _ sequence: String, of device: String) -> String
    {
        let words = [identifier, sequence].filter { $0 != "-" }.joined(separator: "/")
        return words.isEmpty ? "by \(device)" : "\(words) by \(device)"
    }

    private static func set(_ hex: String) throws -> ChangeSet {
        let digits = Array(hex)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
        return try SyncCoder.decodeChangeSet(bytes)
    }
}
