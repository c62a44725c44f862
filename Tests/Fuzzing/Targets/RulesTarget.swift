import MartletModel
import MartletProtocol
import MartletServerCore

@testable import MartletServer

/// The rules file and the seeding file.
enum RulesTarget: FuzzTarget {
    static let name = "rules"

    private static let schema = Schema(
        types: ["teams", "players"].map {
            EntityType(name: $0, key: "id", keyKind: .integer, attributes: [])
        })

    static func check(_ input: [UInt8]) throws {
        do {
            let rules = try RulesFile.parse(input, schema: schema)
            try checkRules(rules, input)
        } catch let failure as ServerFailure {
            try hold(!failure.description.isEmpty, "a refusal says why")
        }
        do {
            let plan = try SeedingFile.parse(input)
            for part in plan.classes {
                try hold(
                    part.name.utf8.allSatisfy {
                        $0 > 0x20 && $0 < 0x7f && $0 != 0x2f && $0 != 0x2e
                    },
                    "a class's name leads out of no folder")
            }
        } catch let failure as ServerFailure {
            try hold(!failure.description.isEmpty, "a refusal says why")
        }
    }

    /// What is allowed is what a plain reading of the file allows.
    private static func checkRules(_ rules: Rules, _ input: [UInt8]) throws {
        let (types, fallback) = try lists(input)
        let roles = Set((Array(types.values) + [fallback]).flatMap { $0.values.joined() })
        for role in roles.union(["nobody"]) {
            let principal = Principal(name: "p", roles: [role])
            for type in schema.types.map(\.name) {
                for (word, operation) in Operations.words {
                    let list = types[type]?[word] ?? fallback[word]
                    try hold(
                        rules.operations(of: principal, on: type).contains(operation)
                            == (list?.contains(role) ?? true),
                        "“\(role)” may do to “\(type)” what the file says")
                }
            }
        }
    }

    private typealias Lists = [String: [String]]

    private static func lists(_ input: [UInt8]) throws -> (types: [String: Lists], rest: Lists) {
        var types: [String: Lists] = [:]
        var rest: Lists = [:]
        var json = JSONReader(input)
        try json.readObject { (json, name) throws(WireFault) in
            if name == "types" {
                try json.readObject { (json, name) throws(WireFault) in
                    types[name] = try lists(&json)
                }
            } else {
                rest = try lists(&json)
            }
        }
        try json.finish()
        return (types, rest)
    }

    private static func lists(_ json: inout JSONReader) throws(WireFault) -> Lists {
        var found: Lists = [:]
        try json.readObject { (json, name) throws(WireFault) in
            var roles: [String] = []
            try json.readArray { json throws(WireFault) in roles.append(try json.readText()) }
            found[name] = roles
        }
        return found
    }
}
