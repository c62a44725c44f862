/// An object of a script. Its reading functions name the mistakes.
struct ScriptObject {
    let node: ScriptNode

    /// - Throws: `MockScriptError` if the value is no object, or has members other than `names`.
    init(_ node: ScriptNode, names: [String]) throws(MockScriptError) {
        guard case .object(let members) = node.content else {
            throw node.fault("this must be an object with \(Self.list(names)).")
        }
        for member in members where !names.contains(member.name) {
            throw member.value.fault(
                "“\(member.name)” means nothing here; there is \(Self.list(names)).")
        }
        self.node = node
    }

    private static func list(_ names: [String]) -> String { names.joined(separator: ", ") }

    func has(_ name: String) -> Bool { node[name] != nil }

    func text(_ name: String) throws(MockScriptError) -> String? {
        guard let value = node[name] else { return nil }
        guard let text = value.text else { throw value.fault("write a text in quotes.") }
        return text
    }

    func boolean(_ name: String) throws(MockScriptError) -> Bool? {
        guard let value = node[name] else { return nil }
        guard let flag = value.boolean else { throw value.fault("write true or false.") }
        return flag
    }

    /// - Parameter unit: The unit of the number, for the message.
    func number(
        _ name: String, _ unit: String, in range: ClosedRange<Int64> = 0...Int64(Int32.max)
    ) throws(MockScriptError) -> Int64? {
        guard let value = node[name] else { return nil }
        guard let number = value.integer, range.contains(number) else {
            throw value.fault(
                "write \(unit), a whole number of \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    func list(_ name: String) throws(MockScriptError) -> [ScriptNode] {
        guard let value = node[name] else { return [] }
        guard case .list(let elements) = value.content else {
            throw value.fault("write a list in brackets.")
        }
        return elements
    }
}
