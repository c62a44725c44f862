internal import Foundation
internal import MartletModel
internal import MartletProtocol

/// Reads the steps of a script.
struct StepReading {
    let schema: Schema
    /// The folder of the files that steps name; nil for the process's current folder.
    let folder: String?

    func step(_ node: ScriptNode, number: Int) throws(MockScriptError) -> MockStep {
        let object = try ScriptObject(
            node, names: ["name", "on", "when", "expect", "times", "optional", "then"])
        guard let on = object.node["on"] else {
            throw node.fault("the step does not say what it is for; write \"on\": one of \(known).")
        }
        guard let endpoint = on.text.flatMap({ MockEndpoint(rawValue: $0) }) else {
            throw on.fault("write one of \(known).")
        }
        return MockStep(
            name: try object.text("name") ?? "step \(number)", endpoint: endpoint,
            when: try conditions(object.node["when"]),
            expect: try conditions(object.node["expect"]),
            times: try times(object), isOptional: try object.boolean("optional") ?? false,
            answer: try answer(object.node["then"], isStream: endpoint == .stream))
    }

    private var known: String {
        MockEndpoint.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
    }

    private func times(_ object: ScriptObject) throws(MockScriptError) -> Int? {
        guard let node = object.node["times"] else { return 1 }
        if node.text == "any" { return nil }
        guard let number = node.integer, 1...1_000_000 ~= number else {
            throw node.fault("write a number from 1, or \"any\".")
        }
        return Int(number)
    }

    // MARK: - Conditions

    private func conditions(_ node: ScriptNode?) throws(MockScriptError) -> [MockCondition] {
        guard let node else { return [] }
        guard case .object(let members) = node.content else {
            throw node.fault("write an object of what is asked, such as {\"since\": 4}.")
        }
        var conditions: [MockCondition] = []
        for member in members {
            let root = member.name.prefix { $0 != "." }
            guard MockRequest.roots.contains(String(root)) else {
                throw member.value.fault(
                    "a request has \(MockRequest.roots.sorted().joined(separator: ", ")), and what"
                        + " is inside after a point; there is no “\(root)”.")
            }
            conditions.append(
                MockCondition(path: member.name, test: try test(member.value)))
        }
        return conditions
    }

    private func test(_ node: ScriptNode) throws(MockScriptError) -> MockCondition.Test {
        guard case .object(let members) = node.content, members.count == 1 else {
            return .equals(node)
        }
        let value = members[0].value
        switch members[0].name {
        case "atLeast":
            guard let number = value.integer else { throw value.fault("write a whole number.") }
            return .atLeast(number)
        case "atMost":
            guard let number = value.integer else { throw value.fault("write a whole number.") }
            return .atMost(number)
        case "exists":
            guard let flag = value.boolean else { throw value.fault("write true or false.") }
            return .exists(flag)
        case "contains":
            guard let text = value.text else { throw value.fault("write a text in quotes.") }
            return .contains(text)
        default: return .equals(node)
        }
    }

    // MARK: - Answers

    private static let contents = [
        "log", "refuse", "answer", "text", "batch", "generate", "problem", "file", "hold",
        "end",
    ]
    private static let partNames = contents + ["delay", "repeat", "cut", "truncate"]

    private func answer(
        _ node: ScriptNode?, isStream: Bool
    ) throws(MockScriptError) -> MockAnswer {
        var answer = MockAnswer()
        guard let node else {
            answer.parts = [MockPart(content: .log)]
            return answer
        }
        let object = try ScriptObject(
            node,
            names: ["status", "headers", "hangUp", "gzip", "drip", "parts"] + Self.partNames)
        answer.status = Int(try object.number("status", "an HTTP status", in: 200...599) ?? 200)
        answer.headers = try headers(object)
        answer.hangsUp = try object.boolean("hangUp") ?? false
        answer.isCompressed = try object.boolean("gzip") ?? false
        answer.drip = try drip(object)
        if let parts = object.node["parts"] {
            guard isStream else { throw parts.fault("only a step on \"stream\" has parts.") }
            if let other = Self.contents.first(where: { object.has($0) }) {
                throw parts.fault("put “\(other)” among the parts.")
            }
            answer.delay = try object.number("delay", "milliseconds") ?? 0
            for part in try object.list("parts") {
                answer.parts.append(
                    try self.part(try ScriptObject(part, names: Self.partNames), isStream: true))
            }
        } else {
            var part = try self.part(object, isStream: isStream)
            (answer.delay, part.delay) = (part.delay, 0)
            if case .problem(let problem) = part.content {
                answer.status = problem.status
            }
            answer.parts = [part]
        }
        if answer.isCompressed, let problem = answer.obstacleToCompression {
            throw node.fault(problem)
        }
        return answer
    }

    private func headers(
        _ object: ScriptObject
    ) throws(MockScriptError) -> [(name: String, value: String)] {
        guard let node = object.node["headers"] else { return [] }
        var headers: [(name: String, value: String)] = []
        for member in node.members {
            guard let value = member.value.text else {
                throw member.value.fault("write the header's value as a text in quotes.")
            }
            headers.append((member.name, value))
        }
        return headers
    }

    private func drip(_ object: ScriptObject) throws(MockScriptError) -> (Int, Int64)? {
        guard let node = object.node["drip"] else { return nil }
        let inner = try ScriptObject(node, names: ["bytes", "pause"])
        guard let bytes = try inner.number("bytes", "bytes", in: 1...Int64(Int32.max)) else {
            throw node.fault("write {\"bytes\": 100, \"pause\": 5}: bytes, then milliseconds.")
        }
        return (Int(bytes), try inner.number("pause", "milliseconds") ?? 0)
    }

    private func part(
        _ object: ScriptObject, isStream: Bool
    ) throws(MockScriptError) -> MockPart {
        let given = Self.contents.filter { object.has($0) }
        guard given.count < 2 else {
            throw object.node.fault(
                "“\(given[0])” and “\(given[1])” are two answers; leave one out.")
        }
        var part = MockPart(content: try content(given.first, object, isStream: isStream))
        part.delay = try object.number("delay", "milliseconds") ?? 0
        part.times = Int(try object.number("repeat", "a number of times", in: 1...1_000_000) ?? 1)
        part.cut = try object.number("cut", "bytes").map { Int($0) }
        part.truncate = try object.number("truncate", "bytes").map { Int($0) }
        if part.cut != nil, part.truncate != nil {
            throw object.node.fault("“cut” and “truncate” exclude each other; leave one out.")
        }
        return part
    }

    private func content(
        _ name: String?, _ object: ScriptObject, isStream: Bool
    ) throws(MockScriptError) -> MockPart.Content {
        guard let name, let node = object.node[name] else {
            let status = try object.number("status", "an HTTP status", in: 200...599) ?? 200
            guard status >= 400 else { return .log }
            return .problem(
                Problem(
                    status: Int(status), kind: "scripted", detail: "The script says so."))
        }
        switch name {
        case "log": return .log
        case "refuse": return try refusal(node)
        case "answer": return .bytes(node.compact)
        case "text":
            guard let text = node.text else { throw node.fault("write a text in quotes.") }
            return .bytes([UInt8](text.utf8))
        case "batch":
            guard case .object = node.content else { throw node.fault("write a batch's object.") }
            return .batch(node.batch, id: node["nextVersion"]?.integer)
        case "generate": return .generated(try MockGenerator(node, schema: schema))
        case "problem": return .problem(try problem(node, object))
        case "file": return .file(try file(node))
        case "hold":
            guard isStream else { throw node.fault("only a stream can be held open.") }
            return .hold
        default:
            guard isStream else { throw node.fault("only a stream is ended.") }
            return .end
        }
    }

    private func file(_ node: ScriptNode) throws(MockScriptError) -> [UInt8] {
        guard let name = node.text else { throw node.fault("write a path in quotes.") }
        let base = URL(fileURLWithPath: folder ?? ".", isDirectory: true)
        let path = URL(fileURLWithPath: name, relativeTo: base).path
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw node.fault("there is no file to read at \(path).")
        }
        return [UInt8](bytes)
    }

    private func refusal(_ node: ScriptNode) throws(MockScriptError) -> MockPart.Content {
        let object = try ScriptObject(node, names: ["reason", "message", "retryAfter"])
        guard let reason = try object.text("reason") else {
            throw node.fault("write {\"reason\": \"stale\"}, or another reason of docs/wire.md.")
        }
        return .refusal(
            RefusalReason(rawValue: reason),
            message: try object.text("message") ?? "The script refuses it.",
            retryAfter: try object.number("retryAfter", "seconds"))
    }

    private func problem(
        _ node: ScriptNode, _ answer: ScriptObject
    ) throws(MockScriptError) -> Problem {
        let object = try ScriptObject(node, names: ["kind", "detail", "retryAfter"])
        guard let status = try answer.number("status", "an HTTP status", in: 400...599) else {
            throw node.fault("a problem needs a status beside it, such as \"status\": 503.")
        }
        return Problem(
            status: Int(status), kind: try object.text("kind") ?? "scripted",
            detail: try object.text("detail") ?? "The script says so.",
            retryAfter: try object.number("retryAfter", "seconds"))
    }
}

extension MockAnswer {
    /// The reason for which the body cannot be compressed; nil if it can.
    fileprivate var obstacleToCompression: String? {
        guard drip == nil, parts.count == 1 else { return "gzip goes without drip and parts." }
        if case .generated = parts[0].content { return "what is generated is sent without gzip." }
        return nil
    }
}
