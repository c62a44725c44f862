internal import MartletModel
internal import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// The script of a `MockServer`: the requests that it expects, and its answers, byte by byte.
///
/// The format is JSON; `docs/mock.md` describes it.
public struct MockScript: Sendable {
    /// The answer to a request that fits no step.
    enum Fallback: String, Sendable {
        /// The log of accepted sets answers.
        case log
        /// The answer is 404, and the verdict names the request.
        case refuse
    }

    /// The value of `t` in deltas without a time of acceptance.
    static let seconds: Int64 = 1_763_717_564

    let schema: Schema
    let ddl: String
    let dataSet: String?
    /// The token that a client must send; nil accepts every client.
    let token: String?
    /// The change sets in the log at the start.
    let log: [ChangeSet]
    let fallback: Fallback
    let steps: [MockStep]
    /// The largest id that the steps assign, by type.
    let largestIDs: [String: Int64]

    /// Reads a script.
    /// - Parameters:
    ///   - json: The content of the script.
    ///   - folder: The folder of the files that the script names; nil for the process's current
    ///     folder.
    /// - Throws: `MockScriptError` with the line, the member, and what to write.
    public init(json: [UInt8], folder: String? = nil) throws(MockScriptError) {
        let root = try ScriptNode.read(json)
        let object = try ScriptObject(
            root, names: ["schema", "dataSet", "token", "log", "default", "steps"])
        (schema, ddl) = try Self.schema(object)
        dataSet = try object.text("dataSet")
        token = try object.text("token")
        log = try Self.log(object)
        fallback = try Self.fallback(object)
        largestIDs = root["steps"]?.largestIDs ?? [:]
        var steps: [MockStep] = []
        for (index, node) in try object.list("steps").enumerated() {
            steps.append(
                try StepReading(schema: schema, folder: folder).step(node, number: index + 1))
        }
        self.steps = steps
    }

    private static func schema(
        _ object: ScriptObject
    ) throws(MockScriptError) -> (Schema, ddl: String) {
        guard let node = object.node["schema"] else { return (Schema(types: []), "") }
        var script = node.text
        if case .list(let lines) = node.content {
            script = lines.compactMap(\.text).joined(separator: "\n")
        }
        guard let script else {
            throw node.fault("write CREATE statements, as a text or as a list of lines.")
        }
        do {
            let connection = try Connection(path: ":memory:")
            let schema = try SchemaMigration.apply(script: script, to: connection)
            return (schema, try SchemaMigration.ddl(of: connection, triggers: false))
        } catch {
            throw node.fault("the tables cannot be made: \(error)")
        }
    }

    private static func log(_ object: ScriptObject) throws(MockScriptError) -> [ChangeSet] {
        var sets: [ChangeSet] = []
        for node in try object.list("log") {
            do throws(WireFault) {
                var set = try SyncCoder.decodeChangeSet(node.source)
                set.source = SourceRange()
                sets.append(set)
            } catch {
                throw node.fault("this is no change set as docs/wire.md has it: \(error.message)")
            }
        }
        return sets
    }

    private static func fallback(_ object: ScriptObject) throws(MockScriptError) -> Fallback {
        guard let node = object.node["default"] else { return .log }
        guard let fallback = node.text.flatMap({ Fallback(rawValue: $0) }) else {
            throw node.fault("write \"log\" or \"refuse\".")
        }
        return fallback
    }
}
