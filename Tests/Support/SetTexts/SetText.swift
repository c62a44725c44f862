/// The JSON of a change set, for tests.
package struct SetText: CustomStringConvertible, Sendable {
    private var head: [String] = []
    private var order: [String] = []
    private var create: [String: [String]] = [:]
    private var update: [String: [String]] = [:]
    private var delete: [String: [String]] = [:]
    private var attributes: [String: [String]] = [:]

    /// - Parameter id: The set's identifier; its sequence too where it is a number after a letter.
    package init(
        _ id: String? = nil, sequence: Int? = nil, seen: Int64? = nil, after: String? = nil
    ) {
        if let id { head.append("\"identifier\":\"\(id)\"") }
        if let sequence { head.append("\"sequence\":\(sequence)") }
        if let seen { head.append("\"seen\":\(seen)") }
        if let after { head.append("\"dependencyIdentifier\":\"\(after)\"") }
    }

    private func quoted(_ id: String) -> String {
        Int64(id) == nil ? "\"\(id)\"" : id
    }

    private mutating func add(_ type: String, _ id: String, _ json: String?) {
        if !order.contains(type) { order.append(type) }
        if let json { attributes[type, default: []].append("\"\(id)\":{\(json)}") }
    }

    /// Lists a record as made.
    /// - Parameter json: Members of its attributes.
    package func create(_ type: String, _ id: String, _ json: String = "") -> SetText {
        var set = self
        set.add(type, id, json)
        set.create[type, default: []].append(quoted(id))
        return set
    }

    /// Lists a record as changed.
    /// - Parameter json: Members of its attributes.
    package func update(_ type: String, _ id: String, _ json: String) -> SetText {
        var set = self
        set.add(type, id, json)
        set.update[type, default: []].append(quoted(id))
        return set
    }

    /// Lists a record as removed.
    /// - Parameter json: Members of its attributes.
    package func delete(_ type: String, _ id: String, _ json: String? = nil) -> SetText {
        var set = self
        set.add(type, id, json)
        set.delete[type, default: []].append(quoted(id))
        return set
    }

    package var description: String {
        var members = head
        members.append("\"types\":[\(order.map { "\"\($0)\"" }.joined(separator: ","))]")
        for type in order {
            func list(_ ids: [String]?) -> String { (ids ?? []).joined(separator: ",") }
            members.append(
                """
                "\(type)":{"create":[\(list(create[type]))],"update":[\(list(update[type]))],\
                "delete":[\(list(delete[type]))],\
                "attributes":{\(list(attributes[type]))}}
                """)
        }
        return "{\(members.joined(separator: ","))}"
    }
}
