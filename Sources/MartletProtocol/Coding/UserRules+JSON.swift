extension SyncWriter {
    mutating func write(_ rules: UserRules) {
        json.beginObject()
        json.member("fingerprint", rules.fingerprint)
        json.member("text", rules.text)
        json.member("user", rules.user)
        json.name("roles")
        json.beginArray()
        for role in rules.roles { json.text(role) }
        json.endArray()
        json.name("claims")
        json.beginObject()
        for (name, value) in rules.claims.sorted(by: { $0.key < $1.key }) {
            json.member(name, value)
        }
        json.endObject()
        json.endObject()
    }
}

extension SyncReader {
    mutating func readRules() throws(WireFault) -> UserRules {
        _ = json.peek()
        let start = json.position
        var (fingerprint, text): (String?, String?) = (nil, nil)
        var rules = UserRules.none
        try readMembers { (reader, name) throws(WireFault) in
            switch name {
            case "fingerprint": fingerprint = try reader.readName()
            case "text": text = try reader.json.readText()
            case "user": rules.user = try reader.json.readText()
            case "roles":
                try reader.readElements { (reader) throws(WireFault) in
                    rules.roles.append(try reader.json.readText())
                }
            case "claims":
                try reader.readMembers { (reader, name) throws(WireFault) in
                    rules.claims[name] = try reader.json.readText()
                }
            default: try reader.json.skipValue()
            }
        }
        guard let fingerprint, let text else {
            throw WireFault("`rules` lacks its fingerprint or its text.", at: start, shape: true)
        }
        rules.fingerprint = fingerprint
        rules.text = text
        return rules
    }
}

extension SyncCoder {
    /// Writes rules as an answer has them.
    package static func encode(_ rules: UserRules) -> [UInt8] {
        var writer = SyncWriter()
        writer.write(rules)
        return writer.json.bytes
    }

    /// Reads rules that `encode` wrote.
    /// - Throws: `WireFault` if the bytes are no rules.
    package static func decodeRules(_ bytes: [UInt8]) throws(WireFault) -> UserRules {
        var reader = SyncReader(bytes, limits: .none)
        let rules = try reader.readRules()
        try reader.json.finish()
        return rules
    }
}
