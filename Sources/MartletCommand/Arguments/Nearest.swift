/// Finds the word that a person may have meant by a mistyped one.
enum Nearest {
    /// Returns the word closest to `typed`, if at most a third of its letters differ; otherwise
    /// nil.
    static func word(to typed: String, in words: [String]) -> String? {
        let ranked = words.map { (word: $0, distance: distance(typed, $0)) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(1, max(typed.count, best.word.count) / 3) ? best.word : nil
    }

    /// Returns the number of letters to insert, delete, replace or swap with their neighbour
    /// (Damerau's distance in its restricted form, by dynamic programming).
    /// - Complexity: O(*nm*), the lengths of the words.
    static func distance(_ one: String, _ other: String) -> Int {
        let left = Array(one.unicodeScalars)
        let right = Array(other.unicodeScalars)
        var rows = [Array(0...right.count)]
        for (i, letter) in left.enumerated() {
            var row = [i + 1]
            for (j, target) in right.enumerated() {
                var best = min(rows[i][j + 1], row[j]) + 1
                best = min(best, rows[i][j] + (letter == target ? 0 : 1))
                if i > 0, j > 0, letter == right[j - 1], left[i - 1] == target {
                    best = min(best, rows[i - 1][j - 1] + 1)
                }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
