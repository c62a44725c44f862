internal import MartletModel
internal import MartletProtocol

/// A value of a JSON document, with its location in the document.
struct ScriptNode: Sendable {
    /// The kind of a value, and its content.
    indirect enum Content: Hashable, Sendable {
        case scalar(Value)
        case list([ScriptNode])
        case object([Member])
    }

    /// One member of an object.
    struct Member: Hashable, Sendable {
        let name: String
        let value: ScriptNode
    }

    let content: Content
    /// The names from the document's start to this value: `steps[2].then`.
    let path: String
    /// The line, counted from 1.
    let line: Int
    /// The text of the value as it was written.
    let source: [UInt8]

    var members: [Member] {
        if case .object(let members) = content { return members }
        return []
    }

    var elements: [ScriptNode] {
        if case .list(let elements) = content { return elements }
        return []
    }

    var integer: Int64? {
        if case .scalar(.integer(let number)) = content { return number }
        return nil
    }

    var text: String? {
        if case .scalar(.text(let text)) = content { return text }
        return nil
    }

    var boolean: Bool? {
        if case .scalar(.boolean(let flag)) = content { return flag }
        return nil
    }

    subscript(name: String) -> ScriptNode? {
        members.first { $0.name == name }?.value
    }

    /// Returns the value at a path of names and positions: `changeSets.0.types`. A list and an
    /// object have a `count`, unless a member has that name.
    func value(at path: some StringProtocol) -> ScriptNode? {
        guard !path.isEmpty else { return self }
        let parts = path.split(separator: ".", maxSplits: 1)
        let (name, rest) = (String(parts[0]), parts.count > 1 ? parts[1] : "")
        if let member = self[name] { return member.value(at: rest) }
        if let index = Int(name), elements.indices.contains(index) {
            return elements[index].value(at: rest)
        }
        guard name == "count", rest.isEmpty else { return nil }
        switch content {
        case .scalar: return nil
        case .list(let elements): return Self.number(Int64(elements.count))
        case .object(let members): return Self.number(Int64(members.count))
        }
    }

    /// A value that stands in no document.
    static func number(_ number: Int64) -> ScriptNode {
        ScriptNode(
            content: .scalar(.integer(number)), path: "", line: 0,
            source: [UInt8](String(number).utf8))
    }

    /// A value that stands in no document.
    static func text(_ text: String) -> ScriptNode {
        var json = JSONWriter()
        json.text(text)
        return ScriptNode(content: .scalar(.text(text)), path: "", line: 0, source: json.bytes)
    }
}

/// Two values are equal if their contents are, whatever their locations and the order of their
/// members.
extension ScriptNode: Hashable {
    static func == (left: ScriptNode, right: ScriptNode) -> Bool {
        switch (left.content, right.content) {
        case (.scalar(let a), .scalar(let b)): a == b
        case (.list(let a), .list(let b)): a == b
        case (.object(let a), .object(let b)):
            a.count == b.count && a.allSatisfy { right[$0.name] == $0.value }
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch content {
        case .scalar(let value): hasher.combine(value)
        case .list(let elements): hasher.combine(elements.count)
        case .object(let members): hasher.combine(members.count)
        }
    }
}

// MARK: - Reading

extension ScriptNode {
    /// Reads a whole document.
    /// - Throws: `MockScriptError` if the bytes are not JSON.
    static func read(_ bytes: [UInt8]) throws(MockScriptError) -> ScriptNode {
        var reading = ScriptReading(bytes)
        do {
            let node = try reading.value(path: "")
            try reading.json.finish()
            return node
        } catch {
            throw MockScriptError(
                line: reading.line(at: error.offset), member: "",
                message: "\(error.message) A script is one JSON object; see docs/mock.md.")
        }
    }

    func fault(_ message: String) -> MockScriptError {
        MockScriptError(line: line, member: path, message: message)
    }
}

/// Reads a document and counts its lines.
private struct ScriptReading {
    var json: JSONReader
    private let bytes: [UInt8]
    private var position = 0
    private var lines = 1

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        json = JSONReader(bytes)
    }

    mutating func value(path: String) throws(WireFault) -> ScriptNode {
        // This skips the white space before the value.
        let kind = json.nextKind()
        let start = json.position
        advance(to: start)
        let line = lines
        let content: ScriptNode.Content
        switch kind {
        case .object: content = .object(try members(path: path))
        case .array: content = .list(try elements(path: path))
        default: content = .scalar(try json.readValue())
        }
        return ScriptNode(
            content: content, path: path, line: line, source: Array(bytes[start..<json.position]))
    }

    private mutating func members(path: String) throws(WireFault) -> [ScriptNode.Member] {
        var members: [ScriptNode.Member] = []
        var reading = self
        try json.readObject { (json, name) throws(WireFault) in
            reading.json = json
            let inner = path.isEmpty ? name : "\(path).\(name)"
            members.append(.init(name: name, value: try reading.value(path: inner)))
            json = reading.json
        }
        take(reading)
        return members
    }

    private mutating func elements(path: String) throws(WireFault) -> [ScriptNode] {
        var elements: [ScriptNode] = []
        var reading = self
        try json.readArray { (json) throws(WireFault) in
            reading.json = json
            elements.append(try reading.value(path: "\(path)[\(elements.count)]"))
            json = reading.json
        }
        take(reading)
        return elements
    }

    private mutating func take(_ reading: ScriptReading) {
        position = reading.position
        lines = reading.lines
    }

    private mutating func advance(to end: Int) {
        while position < end {
            if bytes[position] == UInt8(ascii: "\n") { lines += 1 }
            position += 1
        }
    }

    func line(at offset: Int) -> Int {
        1 + bytes.prefix(max(0, offset)).count { $0 == UInt8(ascii: "\n") }
    }
}
