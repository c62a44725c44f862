import Testing

@testable import MartletPostgres

/// JSON texts that PostgreSQL would make too much of.
@Suite("The shape of JSON")
struct JSONFormatTests {
    private static func nested(_ levels: Int) -> String {
        String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }

    @Test(
        "is taken whatever its strings hold, with the exponents that people write",
        arguments: [
            "", "1", "1e300", "-1.5E-300", "[1e308,2.e5]", #"{"a":"1e131000","b":["\"1e131000"]}"#,
            #"{"1e131000":1}"#, "1e+5", "e99999999", "\"unfinished 1e131000", nested(2_000),
            "\"\(String(repeating: "[", count: 9_000))\"",
        ])
    func takenJSON(text: String) {
        #expect(JSONFormat.fault(of: text, expands: true) == nil)
    }

    @Test(
        "is refused if numbers would be written out to much more than the text",
        arguments: [
            "1e131000", "1.5E+131000", "1e-16383", "[1e5000]", "{\"a\":1e99999999999999999999}",
            "[" + Array(repeating: "1e300", count: 60).joined(separator: ",") + "]",
        ])
    func exponents(text: String) {
        #expect(JSONFormat.fault(of: text, expands: true)?.contains("exponents") == true)
        // As json it stays as it was written.
        #expect(JSONFormat.fault(of: text, expands: false) == nil)
    }

    @Test("is refused if it is nested too deep")
    func depth() {
        for expands in [true, false] {
            #expect(
                JSONFormat.fault(of: Self.nested(2_001), expands: expands)?.contains("levels")
                    == true)
        }
    }
}
