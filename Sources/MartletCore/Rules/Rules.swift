/// Which roles may create, update and delete records of which types.
///
/// A principal may do what any of its roles may; one without a role that is listed here may do
/// what `fallback` allows.
public struct Rules: Hashable, Sendable {
    /// What one role may do.
    public struct Grant: Hashable, Sendable {
        /// By type; a type that is not listed takes `others`.
        public var types: [String: Operations]
        /// For types not listed.
        public var others: Operations

        public init(types: [String: Operations] = [:], others: Operations = .all) {
            self.types = types
            self.others = others
        }

        /// What this grant allows on a type.
        public func operations(on type: String) -> Operations {
            types[type] ?? others
        }
    }

    /// By role.
    public var roles: [String: Grant]
    /// For a principal none of whose roles is listed.
    public var fallback: Grant

    public init(roles: [String: Grant] = [:], fallback: Grant = Grant()) {
        self.roles = roles
        self.fallback = fallback
    }

    /// Everybody may do everything.
    public static let everything = Rules()

    /// What a principal may do to records of a type.
    public func operations(of principal: Principal, on type: String) -> Operations {
        var allowed: Operations = []
        var isListed = false
        for role in principal.roles {
            guard let grant = roles[role] else { continue }
            isListed = true
            allowed.formUnion(grant.operations(on: type))
        }
        return isListed ? allowed : fallback.operations(on: type)
    }
}

/// A set of the three things one can do to a record.
public struct Operations: OptionSet, Hashable, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    public static let create = Operations(rawValue: 1)
    public static let update = Operations(rawValue: 2)
    public static let delete = Operations(rawValue: 4)
    public static let all: Operations = [.create, .update, .delete]

    /// The words of a rules file.
    public static let words: [(word: String, operation: Operations)] = [
        ("create", .create), ("update", .update), ("delete", .delete),
    ]
}

extension Operations: Codable {
    /// Reads a list of words: `["create", "update"]`.
    public init(from decoder: any Decoder) throws {
        var operations: Operations = []
        var list = try decoder.unkeyedContainer()
        while !list.isAtEnd {
            let word = try list.decode(String.self)
            guard let known = Self.words.first(where: { $0.word == word }) else {
                throw DecodingError.dataCorruptedError(
                    in: list,
                    debugDescription: "expected create, update or delete, found “\(word)”")
            }
            operations.formUnion(known.operation)
        }
        self = operations
    }

    /// Writes the words, in the order create, update, delete.
    public func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        for (word, operation) in Self.words where contains(operation) {
            try list.encode(word)
        }
    }
}

/// `{"roles": {"coach": {"types": {"teams": ["update"]}, "others": []}}, "fallback": {…}}`; every
/// member may be absent, `others` then stands for everything.
extension Rules: Codable {
    private enum Member: String, CodingKey {
        case roles
        case fallback
    }

    /// Reads a rules file.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Member.self)
        roles = try members.decodeIfPresent([String: Grant].self, forKey: .roles) ?? [:]
        fallback = try members.decodeIfPresent(Grant.self, forKey: .fallback) ?? Grant()
    }
}

extension Rules.Grant: Codable {
    private enum Member: String, CodingKey {
        case types
        case others
    }

    /// Reads one role's part of a rules file.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Member.self)
        types = try members.decodeIfPresent([String: Operations].self, forKey: .types) ?? [:]
        others = try members.decodeIfPresent(Operations.self, forKey: .others) ?? .all
    }
}
