extension ScriptNode {
    /// The largest id that deltas and change sets in this value assign, by type. The log does not
    /// assign these ids.
    var largestIDs: [String: Int64] {
        var largest: [String: Int64] = [:]
        collect(into: &largest)
        return largest
    }

    private func collect(into largest: inout [String: Int64]) {
        if let type = self["e"]?.text, let id = self["eid"]?.text.flatMap({ Int64($0) }) {
            largest[type] = max(largest[type] ?? 0, id)
        }
        for member in members {
            for id in member.value["create"]?.elements ?? [] {
                guard let id = id.integer else { continue }
                largest[member.name] = max(largest[member.name] ?? 0, id)
            }
            member.value.collect(into: &largest)
        }
        for element in elements { element.collect(into: &largest) }
    }
}
