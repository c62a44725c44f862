import Foundation
import MartletModel
import MartletStore
import Synchronization
import Testing

@Suite("Full-text search")
struct FullTextTests {
    struct Note: Codable, Hashable, ReadableRecord, Sendable {
        var id: Int?
        var title: String
        var body: String?
        var stars = 0
    }

    struct Notes: Table {
        typealias Element = Note
        let tableName = "notes"
        let declaration: String? = """
            CREATE TABLE notes(
                id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, body TEXT, stars INTEGER);
            """
        let id = Column("id", \Note.id)
        let title = Column("title", \Note.title)
        let body = Column("body", \Note.body)
        let stars = Column("stars", \Note.stars)
    }

    private static let notes = Notes()
    private static let search = FullTextTable(on: notes, columns: notes.title, notes.body)

    private func filled(_ options: DatabaseOptions = DatabaseOptions()) async throws -> League {
        let league = try await League(options)
        try await league.pool.write { context in
            try Self.notes.insert(
                contentsOf: [
                    Note(title: "Training plan", body: "Running uphill, and café after", stars: 1),
                    Note(title: "Shopping", body: "Shoes for running. Running socks.", stars: 2),
                    Note(title: "Empty", body: nil, stars: 3),
                ], in: context)
        }
        return league
    }

    private func titles(_ league: League, _ text: String) async throws -> [String] {
        let pattern = try #require(FullTextPattern(allOf: text))
        return try await Self.search.query(matching: pattern).select(Self.notes.title)
            .fetch(in: league.pool)
    }

    @Test("is made and filled where it is first used, and finds the best first")
    func firstUse() async throws {
        let league = try await filled()
        #expect(try await titles(league, "running") == ["Shopping", "Training plan"])
        #expect(try await titles(league, "CAFE up") == ["Training plan"])
        #expect(try await titles(league, "nothing").isEmpty)
    }

    @Test("follows every write, and the ways in which a row can go")
    func inStep() async throws {
        let league = try await filled()
        #expect(try await titles(league, "running").count == 2)
        let made = try await league.pool.write { context in
            let id = try Self.notes.insert(Note(title: "Fourth", body: "swim"), in: context)
            let changed = try Self.notes.update(
                where: Self.notes.title == "Shopping", set: Self.notes.body.set("swim too"),
                in: context)
            #expect(changed == 1)
            _ = try context.rows("UPDATE notes SET id = 70 WHERE title = 'Empty'")
            _ = try context.rows("UPDATE notes SET body = 'swim last' WHERE id = 70")
            // A replaced row goes without a DELETE.
            _ = try context.rows(
                "INSERT OR REPLACE INTO notes(title, body) VALUES ('Training plan', 'swim')")
            return id
        }
        #expect(made == .integer(4))
        #expect(try await titles(league, "running").isEmpty)
        #expect(
            try await titles(league, "swim").sorted() == [
                "Empty", "Fourth", "Shopping", "Training plan",
            ])
        try await league.pool.write { context in
            try Self.notes.delete(where: Self.notes.body.contains("too"), in: context)
            try Self.search.check(in: context)
        }
        #expect(try await titles(league, "swim").count == 3)
    }

    @Test("is part of queries: conditions, orders, joins, rank, snippets, highlights")
    func composed() async throws {
        let league = try await filled()
        let notes = Self.notes
        let found = Self.search.query(matching: try #require(FullTextPattern(allOf: "running")))
        #expect(try await found.filter(notes.stars > 1).count(in: league.pool) == 1)
        #expect(
            try await found.filter(notes.title == "Shopping").first(in: league.pool)?.stars == 2)
        let ordered = found.ordered(by: notes.stars.ascending).limited(to: 1)
        #expect(try await ordered.fetch(in: league.pool).map(\.title) == ["Training plan"])
        let marked = found.select(
            notes.title, Self.search.highlighted(notes.body, before: "[", after: "]"),
            Self.search.snippet(of: notes.body, before: "<", after: ">", words: 2),
            Self.search.rank)
        let (texts, ranks) = try await league.pool.read { context in
            let rows = try marked.fetch(in: context)
            return (rows.map { "\($0.1 ?? "") \($0.2 ?? "")" }, rows.map(\.3))
        }
        #expect(texts[1] == "[Running] uphill, and café after <Running> uphill…")
        #expect(ranks[0] < ranks[1])
        let weighted = found.ordered(by: Self.search.rank(weights: [1, 0]).ascending)
        #expect(try await weighted.count(in: league.pool) == 2)
        let joined = found.join(League.teams, on: League.teams.named().id == notes.stars)
        #expect(
            try await joined.select(League.teams.name, notes.title).count(in: league.pool) == 2)
    }

    @Test(
        "takes what a person types literally",
        arguments: [
            "run\"ning", "running AND", "NEAR(running", "title:running", "running*", "-running",
            "(running", "{title} : running", "running ^ uphill", "\"", "running OR", "\0running",
        ])
    func typed(text: String) async throws {
        let league = try await filled()
        for pattern in [
            FullTextPattern(allOf: text), FullTextPattern(anyOf: text),
            FullTextPattern(phrase: text), FullTextPattern(allOf: text, isComplete: true),
        ] {
            guard let pattern else { continue }
            _ = try await Self.search.query(matching: pattern).count(in: league.pool)
        }
    }

    @Test("builds patterns from words")
    func patterns() async throws {
        #expect(FullTextPattern(allOf: " \"- * ") == nil)
        #expect(FullTextPattern(phrase: "") == nil)
        #expect(FullTextPattern(allOf: "uphill run")?.query == "\"uphill\" \"run\" *")
        let league = try await filled()
        func count(_ pattern: FullTextPattern?) async throws -> Int {
            try await Self.search.query(matching: try #require(pattern)).count(in: league.pool)
        }
        #expect(try await count(FullTextPattern(allOf: "runn")) == 2)
        #expect(try await count(FullTextPattern(allOf: "runn", isComplete: true)) == 0)
        #expect(try await count(FullTextPattern(anyOf: "socks uphill")) == 2)
        #expect(try await count(FullTextPattern(phrase: "running uphill")) == 1)
        #expect(try await count(FullTextPattern(phrase: "uphill running")) == 0)
        #expect(try await count(FullTextPattern(allOf: "shop")?.in(Self.notes.title)) == 1)
        #expect(try await count(FullTextPattern(allOf: "shop")?.in(Self.notes.body)) == 0)
    }

    @Test("is put right where its triggers are gone, its declaration changed, or rows are unseen")
    func repairs() async throws {
        let league = try await filled()
        #expect(try await titles(league, "running").count == 2)
        try await league.pool.write { context in
            _ = try context.rows("DROP TRIGGER notes_search_insert")
            _ = try context.rows("INSERT INTO notes(title, body) VALUES ('Late', 'running')")
        }
        #expect(try await titles(league, "running").count == 3)
        let stemmed = FullTextTable(
            on: Self.notes, columns: Self.notes.title, Self.notes.body, tokenizer: .english,
            prefixes: [2, 3])
        let pattern = try #require(FullTextPattern(allOf: "runs", isComplete: true))
        let reopened = try await DatabasePool.open(path: league.pool.path)
        #expect(try await stemmed.query(matching: pattern).count(in: reopened) == 3)
        await reopened.close()
        let other = FullTextTable(on: Self.notes, columns: Self.notes.title, named: "by_title")
        try await league.pool.write { context in
            for statement in other.script.split(separator: ";\n") {
                _ = try context.rows(String(statement))
            }
        }
        let late = try #require(FullTextPattern(allOf: "late"))
        #expect(try await other.query(matching: late).count(in: league.pool) == 1)
    }

    @Test("is made once, not at each use")
    func madeOnce() async throws {
        let made = Mutex(0)
        var options = DatabaseOptions()
        options.trace = StatementTrace { run in
            if run.sql.hasPrefix("CREATE VIRTUAL") { made.withLock { $0 += 1 } }
        }
        let league = try await filled(options)
        for _ in 0..<3 { #expect(try await titles(league, "running").count == 2) }
        let again = try await DatabasePool.open(path: league.pool.path, options: options)
        let pattern = try #require(FullTextPattern(allOf: "running"))
        #expect(try await Self.search.query(matching: pattern).count(in: again) == 2)
        #expect(made.withLock { $0 } == 1)
    }

    @Test("tells where the index and the rows differ, and can be rebuilt")
    func damageOfIndex() async throws {
        let league = try await filled()
        #expect(try await titles(league, "running").count == 2)
        let found = try await league.refusal { context in
            _ = try context.rows("DELETE FROM notes_search_data WHERE id > 10")
            try Self.search.check(in: context)
        }
        #expect(found?.kind == .file)
        try await league.pool.write { context in
            _ = try context.rows("DELETE FROM notes_search_data WHERE id > 10")
        }
        try await league.pool.write { context in
            try Self.search.rebuild(in: context)
            try Self.search.check(in: context)
        }
        #expect(try await titles(league, "running").count == 2)
    }

    @Test("is refused for what cannot be searched")
    func refusalsOfSearches() async throws {
        let league = try await filled()
        let bare = PlainTable(
            "bare", declaration: "CREATE TABLE bare(id TEXT PRIMARY KEY, t TEXT) WITHOUT ROWID")
        let text = Column<String>("t")
        let pattern = FullTextPattern(query: "a")
        let noRows = try await league.refusal { context in
            try FullTextTable(on: bare, columns: text).query(matching: pattern).count(in: context)
        }
        #expect(noRows?.kind == .schema)
        let noColumn = try await league.refusal { context in
            try FullTextTable(on: Self.notes, columns: text).query(matching: pattern)
                .count(in: context)
        }
        #expect(noColumn?.kind == .unknown)
        let notSearched = try await league.refusal { context in
            try Self.search.query(matching: pattern).select(
                Self.search.snippet(of: Self.notes.stars)
            )
            .fetch(in: context)
        }
        #expect(notSearched?.kind == .unknown)
        let wrong = try await league.refusal { context in
            try Self.search.query(matching: FullTextPattern(query: "\"open")).count(in: context)
        }
        #expect(wrong?.kind == .statement)
    }
}
