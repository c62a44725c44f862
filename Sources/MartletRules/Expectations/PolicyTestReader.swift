internal import MartletModel

/// Reads the statements of a `PolicyTestFile`.
struct PolicyTestReader {
    private var tokens: TokenReader
    private let scalars: [Unicode.Scalar]
    private let schema: Schema
    private var person = PolicyTestFile.Person()
    /// Whether the next SET begins another person.
    private var isPersonUsed = false
    private var expectsAny = false

    static func statements(
        of text: String, schema: Schema
    ) throws(RulesFault) -> [PolicyTestFile.Statement] {
        var reader = PolicyTestReader(
            tokens: TokenReader(try Lexer.tokens(of: text)), scalars: Array(text.unicodeScalars),
            schema: schema)
        var statements: [PolicyTestFile.Statement] = []
        while true {
            while reader.tokens.skipSign(";") {}
            guard !reader.tokens.isAtEnd else { break }
            statements.append(try reader.statement())
        }
        guard reader.expectsAny else {
            throw RulesFault(
                "the file expects nothing", at: reader.tokens.position,
                remedy: "write EXPECT ROWS …, EXPECT 2 ROWS IN … or EXPECT UPDATE … ALLOWED")
        }
        return statements
    }

    private mutating func statement() throws(RulesFault) -> PolicyTestFile.Statement {
        let start = tokens.index
        let position = tokens.position
        let content: PolicyTestFile.Content
        if tokens.skip("expect") {
            content = try expectation()
            (expectsAny, isPersonUsed) = (true, true)
        } else if tokens.skip("set") {
            if isPersonUsed { person = PolicyTestFile.Person() }
            isPersonUsed = false
            try setting()
            content = .person(person)
        } else if ["insert", "update", "delete"].contains(where: tokens.current.isWord) {
            skipToEnd()
            content = .rows(sql: sql(from: start))
        } else {
            throw tokens.unexpected("INSERT, UPDATE, DELETE, SET or EXPECT")
        }
        guard tokens.isAtEnd || tokens.current.isSign(";") else { throw tokens.unexpected("“;”") }
        return PolicyTestFile.Statement(
            line: position.line, column: position.column,
            text: sql(from: start).split(whereSeparator: \.isWhitespace).joined(separator: " "),
            content: content)
    }

    /// Returns the text from a token to before the current one.
    private func sql(from start: Int) -> String {
        let read = tokens.tokens(from: start, to: tokens.index)
        guard let first = read.first, let last = read.last else { return "" }
        return TextSpan(start: first.position, end: last.end).text(in: scalars)
    }

    /// Passes over the rest of a statement, or the part of it before one of these words.
    private mutating func skipToEnd(before words: String...) {
        while !tokens.isAtEnd, !tokens.current.isSign(";"),
            !words.contains(where: tokens.current.isWord)
        {
            tokens.advance()
        }
    }
}

// MARK: - The person

extension PolicyTestReader {
    private mutating func setting() throws(RulesFault) {
        if tokens.skip("role") {
            guard !tokens.skip("none") else { return person.roles = [] }
            person.roles = []
            repeat {
                person.roles.append(try tokens.name("a role or NONE").name)
            } while tokens.skipSign(",")
            return
        }
        let start = tokens.position
        guard tokens.skip("martlet") else { throw unknownSetting(start) }
        try tokens.expectSign(".")
        switch tokens.current.kind {
        case .word("user"):
            tokens.advance()
            person.user = try value()
        case .word("today"):
            tokens.advance()
            person.today = try day()
        case .word("claim"):
            tokens.advance()
            try tokens.expectSign(".")
            person.claims[try claimName()] = try value()
        default: throw unknownSetting(start)
        }
    }

    private func unknownSetting(_ position: TextPosition) -> RulesFault {
        RulesFault(
            "this setting has no meaning here", at: position,
            remedy: "expected ROLE, martlet.user, martlet.claim.NAME or martlet.today")
    }

    /// Reads the name of a claim, which may be a key word.
    private mutating func claimName() throws(RulesFault) -> String {
        switch tokens.current.kind {
        case .word(let name), .name(let name):
            tokens.advance()
            return name
        default: throw tokens.unexpected("the name of a claim")
        }
    }

    private mutating func value() throws(RulesFault) -> String {
        if !tokens.skipSign("=") { try tokens.expect("to") }
        switch tokens.current.kind {
        case .text(let text), .integer(let text):
            tokens.advance()
            return text
        default: throw tokens.unexpected("a text in quotes")
        }
    }

    private mutating func day() throws(RulesFault) -> Int64 {
        let text = try value()
        guard case .date(let days)? = try? RuleValue.text(text).cast(to: .date) else {
            throw RulesFault(
                "“\(text)” is no day", at: tokens.position, remedy: "write '2026-05-31'")
        }
        return days
    }
}

// MARK: - Expectations

extension PolicyTestReader {
    private mutating func expectation() throws(RulesFault) -> PolicyTestFile.Content {
        for command in [PolicyCommand.insert, .update, .delete]
        where tokens.current.isWord(command.rawValue) {
            return .write(try write(command))
        }
        let expected = try expectedRows()
        try tokens.expect("in")
        let type = try self.type()
        var condition: String?
        if tokens.skip("where") {
            let start = tokens.index
            skipToEnd()
            condition = sql(from: start)
            if condition?.isEmpty == true { throw tokens.unexpected("a condition") }
        }
        if case .ids(let ids) = expected { try check(ids, of: type) }
        return .seen(
            PolicyTestFile.Seen(type: type.index, expected: expected, condition: condition))
    }

    /// Reads `2 ROWS`, `NO ROWS` or `ROWS 1, 2`.
    private mutating func expectedRows() throws(RulesFault) -> PolicyTestFile.Seen.Expected {
        var count: Int?
        if case .integer(let digits) = tokens.current.kind {
            count = Int(digits)
            tokens.advance()
        } else if tokens.skip("no") {
            count = 0
        }
        guard tokens.skip("rows") || tokens.skip("row") else {
            throw tokens.unexpected(
                count == nil ? "a number, NO, ROWS, INSERT, UPDATE or DELETE" : "ROWS")
        }
        if let count { return .count(count) }
        var ids: [RecordID] = []
        repeat { ids.append(try id()) } while tokens.skipSign(",")
        return .ids(ids)
    }

    private mutating func id() throws(RulesFault) -> RecordID {
        let isNegative = tokens.skipSign("-")
        switch tokens.current.kind {
        case .text(let text) where !isNegative:
            tokens.advance()
            return .text(text)
        case .integer(let digits):
            guard let number = Int64(isNegative ? "-" + digits : digits) else {
                throw RulesFault("“\(digits)” is too large for an id", at: tokens.position)
            }
            tokens.advance()
            return .integer(number)
        default: throw tokens.unexpected("an id: a number, or a text in quotes")
        }
    }

    private mutating func type() throws(RulesFault) -> (index: Int, name: NameText) {
        let name = try tokens.name("a type")
        return (try Resolver.position(of: name, in: schema), name)
    }

    private func check(
        _ ids: [RecordID], of type: (index: Int, name: NameText)
    ) throws(RulesFault) {
        let isInteger = schema.types[type.index].keyKind == .integer
        for id in ids {
            if case .integer = id, isInteger { continue }
            if case .text = id, !isInteger { continue }
            throw RulesFault(
                "“\(id)” is no id of “\(type.name.name)”", at: type.name.position,
                remedy: isInteger ? "write a number" : "write a text in quotes")
        }
    }

    private mutating func write(
        _ command: PolicyCommand
    ) throws(RulesFault) -> PolicyTestFile.Write {
        let start = tokens.index
        tokens.advance()
        if command == .insert { try tokens.expect("into") }
        if command == .delete { try tokens.expect("from") }
        let type = try type()
        let columns: [String] =
            switch command {
            case .insert: try insertedColumns(type)
            case .update: try updatedColumns(type)
            default: []
            }
        for word in ["conflict", "returning"] {
            var rest = tokens
            while !rest.isAtEnd, !rest.current.isSign(";") {
                if rest.current.isWord(word) {
                    throw RulesFault(
                        "“\(word.uppercased())” is not supported in an expectation",
                        at: rest.position, remedy: "leave it out")
                }
                rest.advance()
            }
        }
        skipToEnd(before: "allowed", "refused")
        let sql = sql(from: start)
        let isAllowed = tokens.skip("allowed")
        if !isAllowed, !tokens.skip("refused") {
            throw tokens.unexpected("ALLOWED or REFUSED")
        }
        return PolicyTestFile.Write(
            command: command, type: type.index, columns: columns, sql: sql, isAllowed: isAllowed)
    }

    private mutating func insertedColumns(
        _ type: (index: Int, name: NameText)
    ) throws(RulesFault) -> [String] {
        guard tokens.skipSign("(") else { throw tokens.unexpected("the columns in brackets") }
        var columns: [String] = []
        repeat {
            if let column = try column(of: type) { columns.append(column) }
        } while tokens.skipSign(",")
        try tokens.expectSign(")")
        return columns
    }

    private mutating func updatedColumns(
        _ type: (index: Int, name: NameText)
    ) throws(RulesFault) -> [String] {
        try tokens.expect("set")
        var columns: [String] = []
        repeat {
            let position = tokens.position
            guard let column = try column(of: type) else {
                throw RulesFault(
                    "an id never changes", at: position, remedy: "write another column")
            }
            columns.append(column)
            try tokens.expectSign("=")
            skipAssigned()
        } while tokens.skipSign(",")
        return columns
    }

    /// Passes over an assigned value.
    private mutating func skipAssigned() {
        var depth = 0
        while !tokens.isAtEnd, !tokens.current.isSign(";") {
            if tokens.current.isSign("(") { depth += 1 }
            if tokens.current.isSign(")") { depth -= 1 }
            if depth == 0 {
                let ends = ["where", "allowed", "refused"].contains(where: tokens.current.isWord)
                if ends || tokens.current.isSign(",") { return }
            }
            tokens.advance()
        }
    }

    /// Reads the name of a column; nil for the key.
    private mutating func column(
        of type: (index: Int, name: NameText)
    ) throws(RulesFault) -> String? {
        let name = try tokens.name("a column")
        let entity = schema.types[type.index]
        if name.name.hasSameBytes(as: entity.key) { return nil }
        guard Resolver.attribute(name.name, of: entity) != nil else {
            throw RulesFault(
                "“\(entity.name)” has no column “\(name.name)”", at: name.position,
                remedy: "expected one of \(Resolver.listed(entity.attributes.map(\.name)))")
        }
        return name.name
    }
}
