/// The data of the server's cases: players of 100 teams, about 200 bytes of JSON each.
enum Organisation {
    static let teams = 100

    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team INTEGER NOT NULL REFERENCES teams(id),
            first_name TEXT NOT NULL, last_name TEXT NOT NULL, birthday TEXT, shirt INTEGER,
            active BOOLEAN, email TEXT, note TEXT
        );
        """

    /// The types of a change set that creates the teams, with temporary ids.
    static var teamSet: String {
        let ids = (1...teams).map { "-\($0)" }.joined(separator: ",")
        let attributes = (1...teams).map { "\"-\($0)\":{\"name\":\"Team \($0)\"}" }
        return """
            "types":["teams"],"teams":{"create":[\(ids)],"update":[],"delete":[],\
            "attributes":{\(attributes.joined(separator: ","))}}
            """
    }

    /// The types of a change set that creates players; `first` counts the device's players.
    static func playerSet(device: Int, first: Int, count: Int) -> String {
        var ids = ""
        var attributes = ""
        for number in first..<(first + count) {
            let comma = number == first ? "" : ","
            ids += "\(comma)-\(1_000 + number)"
            attributes +=
                "\(comma)\"-\(1_000 + number)\":\(player(number + device * 1_000_000_000))"
        }
        return """
            "types":["players"],"players":{"create":[\(ids)],"update":[],"delete":[],\
            "attributes":{\(attributes)}}
            """
    }

    /// A player's attributes, of words in no order: they compress as people's data does, to about
    /// a third.
    private static func player(_ number: Int) -> String {
        var words = Words(seed: UInt64(number))
        let first = words.next()
        let last = words.next()
        let month = 1 + number % 12
        let day = 1 + number % 28
        let note = (0..<6).map { _ in words.next() }.joined(separator: " ")
        return """
            {"team":\(1 + words.number(below: teams)),"first_name":"\(first)",\
            "last_name":"\(last)",\
            "birthday":"20\(10 + number % 10)-\(month < 10 ? "0" : "")\(month)-\
            \(day < 10 ? "0" : "")\(day)",\
            "shirt":\(words.number(below: 99)),"active":\(number % 2 == 0),\
            "email":"\(first).\(last)\(words.number(below: 1_000))@example.org","note":"\(note)"}
            """
    }
}

/// Words made of syllables, the same for the same seed.
private struct Words {
    private var random: SplitMix
    private static let syllables = [
        "ba", "den", "fi", "gor", "hal", "in", "ka", "lem", "mo", "nis", "or", "pa", "qui", "ras",
        "son", "tu", "ver", "wa", "xi", "ye", "zan", "ber", "cho", "du", "el", "fre", "gu", "her",
        "ja", "ko", "li", "mar",
    ]

    init(seed: UInt64) {
        random = SplitMix(state: seed)
    }

    mutating func number(below bound: Int) -> Int {
        Int(random.next() % UInt64(bound))
    }

    mutating func next() -> String {
        let count = 2 + number(below: 2)
        return (0..<count).map { _ in Self.syllables[number(below: 32)] }.joined()
    }
}
