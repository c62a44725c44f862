import Foundation
import MartletModel
import MartletTesting

/// Names, values and texts of files that chance picks, among them such as people forget.
struct OddValues {
    var random: SeededRandom

    // MARK: - Names

    /// Names that tables and columns may have.
    static let names = [
        "plain", "two words", "a,b", "it's", "say \"hi\"", "\"\u{301}", "x.csv", "x.csv.gz",
        ".hidden", "..",
        " lead", "trail ", "naïve", "Größe", "\u{301}mark", "ＩＤ", "ﬁrst", "\u{FEFF}marked",
        "\u{600}number",
        "semi;colon", "#hash", "=1+1", "null", "new", "-dash", "100%", "😀", "per%2Fcent", "~", "*",
        "back\\slash", "C:", "nul", "a\u{200D}", "id_", "old id",
    ]

    /// Names that tables may have, and no file.
    static let paths = ["../up", "a/b", "/tmp/martlet-absolute", "../../up/../down", "deep/", "/"]

    mutating func name(_ taken: inout Set<String>) -> String {
        while true {
            let name = random.one(of: Self.names)
            if taken.insert(name.lowercased()).inserted { return name }
        }
    }

    // MARK: - Values

    private static let pieces = [
        "", " ", ",", "\"", "\"\"", "\n", "\r\n", "\r", "é", "e\u{301}", "\u{FEFF}", "\u{1}",
        "\u{7f}",
        "\u{85}", "\u{2028}", "\u{600}", "😀", "null", "NULL", "007", "1.50", "1e5", "-0", "true",
        "\t",
        ";", "=1+1", "'", "x", "７", "\u{b}", "\\n", "12345678901234567890",
    ]

    mutating func text() -> String {
        (0..<Int.random(in: 0...3, using: &random)).map { _ in random.one(of: Self.pieces) }
            .joined()
    }

    mutating func integer() -> Int64 {
        random.one(of: [
            0, 1, -1, 7, .max, .min, 1 << 53, 1 << 53 + 1, -(1 << 53) - 1,
            Int64(bitPattern: random.next()),
        ])
    }

    mutating func real() -> Double {
        let any = Double(bitPattern: random.next())
        return random.one(of: [
            0.1, -0.0, 3, 1e22, 1e15, 123_456_789.125, .leastNonzeroMagnitude,
            .greatestFiniteMagnitude, 1e-7,
            any.isFinite ? any : 0.5,
        ])
    }

    mutating func bytes() -> [UInt8] {
        (0..<Int.random(in: 0...5, using: &random)).map { _ in
            UInt8(truncatingIfNeeded: random.next() >> 20)
        }
    }

    mutating func decimal(digits: Int) -> String {
        let count = Int.random(in: 1...digits, using: &random)
        var text = (0..<count).map { _ in String(Int.random(in: 0...9, using: &random)) }.joined()
        if count > 1, random.chance(60) {
            let offset = Int.random(in: 1..<count, using: &random)
            text.insert(".", at: text.index(text.startIndex, offsetBy: offset))
        }
        return (random.chance(30) ? "-" : "") + text
    }

    // MARK: - Texts of files

    private static let numbers = [
        "0", "7", "-7", "+7", "007", "1.50", "-0.5", ".5", "5.", "1e3", "1E+3", "1,5", "1 000",
        "-0",
        "0x10", "inf", "nan", "9007199254740993", "9223372036854775807", "9223372036854775808",
        "12345678901234567890", "0.1", "0.000000000000000000001", "123456789012345.5",
        "1234567890123456.5", "7 ", " 7", "７", "1_000", "--7", "1.2.3", "true", "yes", "0", "1",
        "NO",
        "AQI=", "AQI", "AB==", "A Q=", "", "2026-11-24", "null",
    ]

    /// A text that somebody may write into a file, of a column of any kind.
    mutating func typed() -> String {
        random.chance(80) ? random.one(of: Self.numbers) : text()
    }

    /// A field as it stands in a file.
    static func quoted(_ text: String) -> String {
        RandomTable.quoted(text)
    }

    /// A field: as a program writes it, or as another one does.
    mutating func field(_ text: String) -> String {
        let needsQuotes = text.unicodeScalars.contains {
            ",\"\r\n\u{FEFF}".unicodeScalars.contains($0)
        }
        return needsQuotes || random.chance(15) ? Self.quoted(text) : text
    }
}
