import MartletModel
import Testing

@testable import MartletRules

@Suite("Days")
struct DayTests {
    @Test(
        "have PostgreSQL's numbers and texts",
        arguments: [
            ("1970-01-01", 0), ("2026-11-27", 20_784), ("0001-01-01", -719_162),
            ("0001-12-31 BC", -719_163), ("0044-03-15 BC", -735_160), ("4713-01-01 BC", -2_440_550),
            ("9999-12-31", 2_932_896), ("10000-01-01", 2_932_897), ("5874897-12-31", 2_145_042_905),
            ("infinity", Int64.max), ("-infinity", .min),
        ] as [(String, Int64)])
    func both(text: String, days: Int64) {
        #expect(CalendarDay.days(text) == days)
        #expect(CalendarDay.text(days) == text)
    }

    @Test(
        "no other text is one",
        arguments: [
            "", "never", "31.12.2020", "2026-99-99", "2026-02-29", "0000-01-01", "2026-1-5",
            "02026-01-01", "2026-01-01BC", "2026-01-01 10:00 BC", "2026-01-011", "Infinity",
            "12345678-01-01",
        ])
    func none(text: String) { #expect(CalendarDay.days(text) == nil) }

    /// Returns the outcome of a condition for a row with two columns declared DATE.
    private func outcome(
        _ condition: String, _ due: String, _ viewer: Viewer = Viewer(today: 20_784)
    ) throws -> PolicyFinding.Outcome? {
        let schema = Schema(types: [
            EntityType(
                name: "things", key: "id", keyKind: .integer,
                attributes: [
                    Attribute(name: "due", kind: .any, meaning: .date),
                    Attribute(name: "until", kind: .any, meaning: .date),
                ])
        ])
        let program = try RulesProgram(
            "CREATE POLICY p ON things USING (\(condition))", schema: schema)
        return try RuleEvaluator(program, for: viewer, over: RowLookups { _, _, _ in [] })
            .judgement(of: [.integer(1), .text(due), .text("2027-01-01")], type: 0)
            .policies.first?.outcome
    }

    @Test(
        "a text of a column that is no day has no value, whatever it is compared with",
        arguments: [
            "due >= '2026-01-01'", "due <> '2026-01-01'", "due IN ('2026-01-01')", "due > until",
            "due >= martlet_today()", "due BETWEEN '2026-01-01' AND until",
            "due <> '2026-01-01'::date",
            "nullif(due, '2026-01-01') IS NULL", "due IS DISTINCT FROM '2026-01-01'",
        ])
    func odd(condition: String) throws {
        for text in ["31.12.2020", "never", "2026-99-99"] {
            guard case .fault = try outcome(condition, text) else {
                Issue.record("\(text) has a value")
                return
            }
        }
        #expect(try outcome(condition, "2026-06-30") != .fault("a value is no date"))
    }

    @Test("infinite days, days of other ages and of long years are in order")
    func ages() throws {
        for text in ["infinity", "10000-01-01"] {
            #expect(try outcome("due > '2026-01-01' AND due > until", text) == .holds)
            #expect(try outcome("due - 90 > martlet_today()", text) == .holds)
        }
        for text in ["-infinity", "0044-03-15 BC"] {
            #expect(try outcome("due < '0001-01-01' AND due + 90 < until", text) == .holds)
        }
        #expect(
            try outcome("due = 'infinity' AND due::date::text = 'infinity'", "infinity") == .holds)
        for text in ["coalesce(due, 'infinity')", "coalesce(due, 'infinity'::date)"] {
            #expect(try outcome("\(text) = 'infinity'", "infinity") == .holds)
            #expect(try outcome("\(text) > martlet_today()", "12026-01-01") == .holds)
        }
        #expect(
            try outcome("due::date - martlet_today() > 3", "infinity")
                == .fault("infinite days have no difference"))
    }

    @Test("an empty claim is none for martlet_claim, and an empty text for current_setting")
    func emptyClaim() throws {
        let viewer = Viewer(claims: ["club": ""], today: 20_784)
        for (condition, holds) in [
            ("martlet_claim('club') IS NULL", true), ("martlet_claim('club') <> 'x'", false),
            ("current_setting('martlet.claim.club', true) = ''", true),
            ("current_setting('martlet.claim.club') IS NULL", false),
        ] {
            #expect(
                (try outcome(condition, "2026-01-01", viewer) == .holds) == holds, "\(condition)")
        }
    }
}
