extension ExpressionReader {
    /// Reads a query from SELECT on.
    /// - Throws: `RulesFault`, which names what is not supported.
    mutating func query() throws(RulesFault) -> Query {
        var query = Query(position: tokens.position)
        try tokens.expect("select")
        if tokens.current.isWord("distinct") {
            throw RulesFault(
                "“DISTINCT” is not supported", at: tokens.position,
                remedy: "leave it out: rows that come twice change nothing")
        }
        if !tokens.skipSign("*"), !tokens.current.isWord("from") {
            repeat {
                query.outputs.append(try expression())
                if tokens.skip("as") { _ = try tokens.name("a name") }
            } while tokens.skipSign(",")
        }
        if tokens.skip("from") { try sources(&query) }
        if tokens.skip("where") { query.conditions.append(try expression()) }
        try refuse([
            "group": "GROUP BY", "having": "HAVING", "union": "UNION", "window": "WINDOW",
            "intersect": "INTERSECT", "except": "EXCEPT",
        ])
        if tokens.skip("order") { try order(&query) }
        if tokens.skip("limit") { query.limit = try limit() }
        try refuse(["offset": "OFFSET", "fetch": "FETCH", "for": "FOR", "union": "UNION"])
        return query
    }

    private func refuse(_ words: [String: String]) throws(RulesFault) {
        guard case .word(let word) = tokens.current.kind, let shown = words[word] else { return }
        let remedies = [
            "union": "write two conditions with OR", "group": "write EXISTS (…)",
            "fetch": "write LIMIT",
        ]
        throw RulesFault(
            "“\(shown)” is not supported", at: tokens.position, remedy: remedies[word])
    }

    private mutating func sources(_ query: inout Query) throws(RulesFault) {
        try source(&query)
        while true {
            if tokens.skipSign(",") {
                try source(&query)
                continue
            }
            for word in ["left", "right", "full", "natural"] where tokens.current.isWord(word) {
                throw RulesFault(
                    "“\(word.uppercased()) JOIN” is not supported", at: tokens.position,
                    remedy: "write JOIN … ON, or EXISTS (…)")
            }
            let isCross = tokens.skip("cross")
            let isInner = !isCross && tokens.skip("inner")
            guard tokens.skip("join") else {
                if isCross || isInner { throw tokens.unexpected("JOIN") }
                return
            }
            try source(&query)
            if isCross { continue }
            if tokens.current.isWord("using") {
                throw RulesFault(
                    "“USING” is not supported in a join", at: tokens.position,
                    remedy: "write ON a.column = b.column")
            }
            try tokens.expect("on")
            query.conditions.append(try expression())
        }
    }

    /// Reads a table, or joined tables in brackets.
    private mutating func source(_ query: inout Query) throws(RulesFault) {
        guard tokens.current.isSign("("), !tokens.following.isWord("select") else {
            return query.sources.append(try table())
        }
        tokens.advance()
        try deeper { (reader) throws(RulesFault) in try reader.sources(&query) }
        try tokens.expectSign(")")
    }

    private mutating func table() throws(RulesFault) -> Query.Source {
        if tokens.current.isSign("(") || tokens.current.isWord("lateral") {
            throw RulesFault(
                "a query in FROM is not supported", at: tokens.position,
                remedy: "write its tables and conditions in this query")
        }
        let type = try typeReference()
        if tokens.skip("as") { return Query.Source(type: type, alias: try tokens.name("a name")) }
        switch tokens.current.kind {
        case .name: return Query.Source(type: type, alias: try tokens.name("a name"))
        case .word(let word) where !TokenReader.reserved.contains(word):
            return Query.Source(type: type, alias: try tokens.name("a name"))
        default: return Query.Source(type: type, alias: nil)
        }
    }

    /// Reads the name of a type, which may stand behind the schema “public”.
    mutating func typeReference() throws(RulesFault) -> NameText {
        let name = try tokens.name("a type")
        guard tokens.skipSign(".") else { return name }
        guard name.name == "public" else {
            throw RulesFault(
                "the schema “\(name.name)” is not supported", at: name.position,
                remedy: "write the type alone")
        }
        return try tokens.name("a type")
    }

    private mutating func order(_ query: inout Query) throws(RulesFault) {
        try tokens.expect("by")
        repeat {
            let value = try expression()
            let isDescending = tokens.skip("desc")
            if !isDescending { _ = tokens.skip("asc") }
            var nullsFirst: Bool?
            if tokens.skip("nulls") {
                nullsFirst = tokens.skip("first")
                if nullsFirst == false { try tokens.expect("last") }
            }
            query.order.append(
                Query.Order(value: value, isDescending: isDescending, nullsFirst: nullsFirst))
        } while tokens.skipSign(",")
    }

    private mutating func limit() throws(RulesFault) -> Int {
        guard case .integer(let digits) = tokens.current.kind, let limit = Int(digits) else {
            throw tokens.unexpected("a number, such as LIMIT 20")
        }
        tokens.advance()
        return limit
    }
}
