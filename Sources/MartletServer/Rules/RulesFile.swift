internal import Foundation
package import MartletModel
package import MartletRules
package import MartletServerCore

/// Reads a rules file. It has policies in SQL (`RulesProgram`), or is JSON, which says which roles may
/// create, update and delete the records of a type.
///
/// ```json
/// {"types": {"teams": {"create": ["admin"], "delete": []}}, "default": {"delete": ["admin"]}}
/// ```
///
/// Each list names the roles that may do the operation. An empty list allows nobody. If a type has
/// no list for an operation, the list of `default` applies. If `default` has none either, everyone
/// may do it.
///
/// ```swift
/// let bytes = [UInt8](#"{"default": {"delete": ["admin"]}}"#.utf8)
/// configuration.rules = bytes
/// let rules = try RulesFile.parse(bytes, schema: schema)
/// ```
package enum RulesFile {
    /// Returns what a file says.
    ///
    /// - Parameters:
    ///   - bytes: The content of the file: JSON if it begins with a brace, and else policies.
    ///   - schema: The types that a rule may name.
    /// - Throws: `ServerFailure`, which names the position, if the bytes are no rules file.
    package static func read(
        _ bytes: [UInt8], schema: Schema
    ) throws(ServerFailure) -> DataSetRules {
        var content = DataSetRules()
        guard let whole = String(validating: bytes, as: UTF8.self) else {
            throw ServerFailure("The rules file cannot be read; it should be SQL or JSON in UTF-8.")
        }
        let text = withoutMark(whole)
        guard text.utf8.first(where: { ![9, 10, 13, 32].contains($0) }) != UInt8(ascii: "{") else {
            content.roles = try parse(Array(text.utf8), schema: schema)
            return content
        }
        do {
            content.policies = try policies(text, schema: schema)
        } catch let fault as RulesFault {
            throw ServerFailure("The rules file: \(fault).")
        } catch {
            throw ServerFailure("The rules file \(RulesFile.showsNothing)")
        }
        return content
    }

    /// Returns the policies of a text.
    /// - Throws: `RulesFault`; `ShowsNothing` if nobody would see anything.
    package static func policies(_ text: String, schema: Schema) throws -> RulesProgram {
        let program = try RulesProgram(withoutMark(text), schema: schema)
        // Every device would delete all that it has.
        guard !program.showsNothing else { throw ShowsNothing() }
        return program
    }

    /// A file without a policy.
    package struct ShowsNothing: Error {}

    /// The words for a file without a policy, behind its name.
    package static let showsNothing = """
        has no policy, so nobody would see anything. Without a rules file everybody sees everything. Write a \
        policy for each type, such as CREATE POLICY every ON players USING (true); docs/policies.md says \
        how. Or leave the file out.
        """

    /// Returns a text without the byte order mark with which some editors begin a file.
    private static func withoutMark(_ text: String) -> String {
        text.unicodeScalars.first == "\u{FEFF}"
            ? String(text.unicodeScalars.dropFirst()) : text
    }

    /// Returns the rules of a file in JSON.
    ///
    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - schema: The types that a rule may name.
    /// - Throws: `ServerFailure`, which names the position, if the bytes are not a rules file.
    package static func parse(_ bytes: [UInt8], schema: Schema) throws(ServerFailure) -> Rules {
        let file = try decode(bytes)
        for name in file.types.keys.sorted()
        where schema[name]?.name.hasSameBytes(as: name) != true {
            throw ServerFailure(
                "The rules name a type the schema does not have: “\(name)”.")
        }
        let grants = Grants(file: file, schema: schema)
        return Rules(
            roles: Dictionary(
                uniqueKeysWithValues: grants.roles.sorted().map { (ExactName($0), grants.of($0)) }),
            fallback: grants.of(nil))
    }

    private static func decode(_ bytes: [UInt8]) throws(ServerFailure) -> File {
        try SoundJSON.check(bytes, of: "The rules file")
        do {
            return try JSONDecoder().decode(File.self, from: Data(bytes))
        } catch let DecodingError.dataCorrupted(context) where !context.codingPath.isEmpty {
            throw ServerFailure("The rules file: \(context.debugDescription).")
        } catch let DecodingError.typeMismatch(_, context) {
            let path = context.codingPath.map(\.stringValue).joined(separator: ".")
            throw ServerFailure(
                """
                The rules file has a value of the wrong kind at “\(path)”; types and default are \
                objects, create, update and delete are lists of roles.
                """)
        } catch {
            throw ServerFailure("The rules file is not JSON; expected an object with “types”.")
        }
    }

    private struct File: Decodable {
        var types: [String: Lists] = [:]
        var fallback = Lists()

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: Name.self)
            for name in members.allKeys {
                switch name.stringValue {
                case "types": types = try members.decode([String: Lists].self, forKey: name)
                case "default": fallback = try members.decode(Lists.self, forKey: name)
                default: throw name.unknown(in: decoder, expected: "“types” and “default”")
                }
            }
        }
    }

    /// The allowed roles by operation. An operation without a list is not ruled here.
    private struct Lists: Decodable {
        var roles: [Int: [String]] = [:]

        init() {}

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: Name.self)
            for name in members.allKeys {
                guard
                    let known = Operations.words.first(where: { $0.word == name.stringValue })
                else {
                    throw name.unknown(in: decoder, expected: "“create”, “update” and “delete”")
                }
                roles[known.operation.rawValue] = try members.decode([String].self, forKey: name)
            }
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }

        func unknown(in decoder: any Decoder, expected: String) -> DecodingError {
            DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath + [self],
                    debugDescription:
                        "it has a member “\(stringValue)” where only \(expected) are known"))
        }
    }

    /// Turns the file's lists, which are by operation, into the grants of each role.
    private struct Grants {
        let file: File
        let schema: Schema

        var roles: NameSet {
            let lists = file.types.values.map(\.roles) + [file.fallback.roles]
            return NameSet(lists.flatMap { $0.values.joined() })
        }

        /// Returns the grant of a role; nil stands for a principal with none of the named roles.
        func of(_ role: String?) -> Rules.Grant {
            var grant = Rules.Grant(others: operations(of: role, on: Lists()))
            for (type, lists) in file.types {
                grant.types[type] = operations(of: role, on: lists)
            }
            return grant
        }

        private func operations(of role: String?, on lists: Lists) -> Operations {
            var allowed: Operations = []
            for (_, operation) in Operations.words {
                let list =
                    lists.roles[operation.rawValue] ?? file.fallback.roles[operation.rawValue]
                let may =
                    list.map { list in
                        role.map { NameSet(list).contains($0) } ?? false
                    } ?? true
                if may { allowed.formUnion(operation) }
            }
            return allowed
        }
    }
}
