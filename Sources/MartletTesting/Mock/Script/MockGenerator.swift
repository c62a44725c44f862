internal import MartletModel
internal import MartletProtocol

/// Generates the number of new records of one type that a script asks for, while they are sent.
struct MockGenerator: Sendable {
    let type: String
    /// The number of records.
    let count: Int64
    /// The id of the first record; the others have the next ids.
    let firstID: Int64
    /// The version of the first records; nil for the one after the client's.
    let version: Int64?
    /// The number of records that share a version.
    let perVersion: Int64
    /// The number of deltas of one batch in a stream; nil puts all into one.
    let perBatch: Int64?
    /// The value of each attribute as JSON, in which `#` stands for the id.
    private let attributes: [(name: String, pieces: [[UInt8]])]

    /// - Parameter schema: Gives the attributes if the script does not.
    init(_ node: ScriptNode, schema: Schema) throws(MockScriptError) {
        let object = try ScriptObject(
            node,
            names: ["type", "count", "from", "version", "perVersion", "perBatch", "attributes"])
        guard let type = try object.text("type") else {
            throw node.fault("write the type of the records: \"type\": \"teams\".")
        }
        let most: ClosedRange<Int64> = 1...100_000_000
        guard let count = try object.number("count", "a number of records", in: most) else {
            throw node.fault("write how many records: \"count\": 1000.")
        }
        self.type = type
        self.count = count
        firstID = try object.number("from", "an id", in: 1...(1 << 53)) ?? 1
        version = try object.number("version", "a version", in: 1...(1 << 53))
        perVersion = try object.number("perVersion", "a number of records", in: most) ?? 1
        perBatch = try object.number("perBatch", "a number of records", in: most)
        attributes = try Self.attributes(node, type: type, schema: schema)
    }

    private static func attributes(
        _ node: ScriptNode, type: String, schema: Schema
    ) throws(MockScriptError) -> [(name: String, pieces: [[UInt8]])] {
        if let given = node["attributes"] {
            guard case .object(let members) = given.content else {
                throw given.fault("write an object, such as {\"name\": \"Team #\"}.")
            }
            return members.map { ($0.name, pieces($0.value.compact)) }
        }
        guard let described = schema[type] else {
            throw node.fault(
                "the schema has no “\(type)”, so write the records' attributes as well.")
        }
        return described.attributes.filter { $0.isRequired && !$0.isGenerated }.map { attribute in
            let isText = attribute.kind == .text
            return (attribute.name, pieces([UInt8]((isText ? "\"\(type) #\"" : "#").utf8)))
        }
    }

    private static func pieces(_ json: [UInt8]) -> [[UInt8]] {
        json.split(separator: UInt8(ascii: "#"), omittingEmptySubsequences: false).map(Array.init)
    }

    /// Returns the first version for a client that has `since`.
    func firstVersion(since: Int64) -> Int64 { version ?? since + 1 }

    /// Returns the version of the record at a position, counted from 0.
    func version(at index: Int64, since: Int64) -> Int64 {
        firstVersion(since: since) + index / perVersion
    }

    /// Returns the version of the last record.
    func lastVersion(since: Int64) -> Int64 { max(since, version(at: count - 1, since: since)) }

    /// Returns the position of the first record that a client lacks, if the versions are given.
    func start(since: Int64) -> Int64 {
        let versions = since - firstVersion(since: since) + 1
        return min(count, max(0, versions) * perVersion)
    }

    /// Returns the attributes of the record at a position as a JSON object.
    private func object(at index: Int64) -> [UInt8] {
        let id = [UInt8](String(firstID + index).utf8)
        var json = JSONWriter()
        json.beginObject()
        for attribute in attributes {
            json.name(attribute.name)
            json.raw(Array(attribute.pieces.joined(separator: id)))
        }
        json.endObject()
        return json.bytes
    }

    /// Returns the delta of the record at a position.
    func delta(at index: Int64, since: Int64) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("v", version(at: index, since: since))
        json.member("t", MockScript.seconds)
        json.member("e", type)
        json.member("eid", String(firstID + index))
        json.member("op", "upsert")
        json.member("p", String(decoding: object(at: index), as: UTF8.self))
        json.member("new", true)
        json.endObject()
        return json.bytes
    }

    /// Makes the change set of the records from a position on that share its version.
    /// - Returns: The set, and the position after it.
    func changeSet(at index: Int64, since: Int64) -> ([UInt8], next: Int64) {
        let revision = version(at: index, since: since)
        let end = min(count, index + perVersion)
        var json = JSONWriter()
        json.beginObject()
        json.member("revision", revision)
        json.name("types")
        json.beginArray()
        json.text(type)
        json.endArray()
        json.name(type)
        json.beginObject()
        json.name("create")
        json.beginArray()
        for position in index..<end { json.integer(firstID + position) }
        json.endArray()
        for name in ["update", "delete"] {
            json.name(name)
            json.beginArray()
            json.endArray()
        }
        json.name("attributes")
        json.beginObject()
        for position in index..<end {
            json.name(String(firstID + position))
            json.raw(Self.withRevision(object(at: position), revision))
        }
        json.endObject()
        json.endObject()
        json.endObject()
        return (json.bytes, end)
    }

    /// Returns an object of attributes that begins with the record's revision.
    private static func withRevision(_ object: [UInt8], _ revision: Int64) -> [UInt8] {
        let comma = object.count > 2 ? "," : ""
        return Array("{\"revision\":\(revision)\(comma)".utf8) + object.dropFirst()
    }
}
