internal import MartletModel
internal import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// What a `MockServer` plays: which requests it expects, and what it answers, byte by byte.
///
/// The format is JSON and described in `docs/mock.md`.
public struct MockScript: Sendable {
    /// What becomes of a request that no step fits.
    enum Fallback: String, Sendable {
        /// The log of accepted sets answers.
        case log
        /// It is answered 404 and the verdict names it.
        case refuse
    }

    /// `t` of deltas that do not say when they were accepted.
    static let seconds: Int64 = 1_763_717_564

    let schema: Schema
    let ddl: String
    let dataSet: String?
    /// What a client must say to be answered; nil lets everyone in.
    let token: String?
    /// What the log holds at the start.
    let log: [ChangeSet]
    let fallback: Fallback
    let steps: [MockStep]
    /// The largest id the steps give a record, by type.
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
