import SocketTalk

/// A request or an answer as it travels: the lines of its head, and the bytes after it.
struct Letter: Sendable {
    var lines: [String]
    var body: [UInt8] = []

    var bytes: [UInt8] { head + body }

    var head: [UInt8] { Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) }

    /// The address of a request without its query.
    var path: String {
        let words = lines[0].split(separator: " ")
        guard words.count > 1 else { return "" }
        return String(words[1].prefix { $0 != "?" })
    }

    /// The path with which it shares its fate: all files of snapshots count as one.
    var kind: String { path.hasPrefix("/snapshot/") ? "/snapshot/" : path }

    /// The exchange in pieces to which a request belongs, and whether any piece has got through.
    var upload: (name: String, hasProgress: Bool)? {
        let query =
            lines[0].split(separator: " ").dropFirst().first?.split(separator: "?").last ?? ""
        let items = query.split(separator: "&").map { $0.split(separator: "=") }
        func item(_ name: Substring) -> Substring? {
            items.first { $0.count == 2 && $0[0] == name }?[1]
        }
        guard let name = item("upload") else { return nil }
        return (String(name), item("from") != "0" || item("answer") != "0")
    }

    var status: Int {
        let words = lines[0].split(separator: " ")
        return words.count > 1 ? Int(words[1]) ?? 0 : 0
    }

    func value(_ name: String) -> String? {
        lines.dropFirst().first { Self.name(of: $0) == name.lowercased() }.map { line in
            let value = line.drop { $0 != ":" }.dropFirst()
            return String(value.drop { $0 == " " })
        }
    }

    mutating func remove(_ name: String) {
        lines = [lines[0]] + lines.dropFirst().filter { Self.name(of: $0) != name.lowercased() }
    }

    mutating func set(_ name: String, _ value: String) {
        remove(name)
        lines.append("\(name): \(value)")
    }

    /// The names of its fields, in lower case.
    var names: [String] { lines.dropFirst().map(Self.name) }

    private static func name(of line: String) -> String {
        line.prefix { $0 != ":" }.lowercased()
    }
}

/// Reads letters from a connection.
final class LetterReader {
    let connection: RawConnection
    private var buffer: [UInt8] = []

    init(_ connection: RawConnection) {
        self.connection = connection
    }

    /// The next head; nil at the end of the connection.
    func head() -> Letter? {
        let mark: [UInt8] = [13, 10, 13, 10]
        var looked = 0
        while true {
            for start in looked..<max(looked, buffer.count - 3)
            where buffer[start] == 13 && Array(buffer[start..<start + 4]) == mark {
                let text = String(decoding: buffer[..<start], as: UTF8.self)
                buffer.removeFirst(start + 4)
                return Letter(lines: text.split(separator: "\r\n").map(String.init))
            }
            looked = max(0, buffer.count - 3)
            let more = connection.receive()
            guard !more.isEmpty, buffer.count < 1 << 20 else { return nil }
            buffer += more
        }
    }

    /// The next request with its body; nil if none comes whole.
    func request() -> Letter? {
        guard var letter = head() else { return nil }
        let length = letter.value("content-length").flatMap { Int($0) } ?? 0
        while buffer.count < length {
            let more = connection.receive()
            guard !more.isEmpty else { return nil }
            buffer += more
        }
        letter.body = Array(buffer[..<length])
        buffer.removeFirst(length)
        return letter
    }

    /// The next bytes; none at the end of the connection.
    func next() -> [UInt8] {
        guard buffer.isEmpty else {
            defer { buffer = [] }
            return buffer
        }
        return connection.receive()
    }

    /// All bytes up to the end of the connection.
    func rest() -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let more = next()
            guard !more.isEmpty else { return all }
            all += more
        }
    }
}
