/// One header line.
public struct HTTPField: Hashable, Sendable {
    public var name: String
    public var value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The header lines of a request, in the order of their arrival.
///
/// They stay in the bytes that arrived, because most requests have a dozen lines and the handler
/// reads three.
public struct HTTPHeaders: Sendable {
    struct Line: Sendable {
        var nameStart: Int
        var nameEnd: Int
        var valueStart: Int
        var valueEnd: Int
    }

    private let bytes: [UInt8]
    private let lines: [Line]

    init(bytes: [UInt8], lines: [Line]) {
        self.bytes = bytes
        self.lines = lines
    }

    /// Makes headers from fields, for tests and for requests made in the process.
    public init(_ fields: [HTTPField] = []) {
        var bytes: [UInt8] = []
        var lines: [Line] = []
        for field in fields {
            let nameStart = bytes.count
            bytes += field.name.utf8
            let nameEnd = bytes.count
            bytes += field.value.utf8
            lines.append(
                Line(
                    nameStart: nameStart, nameEnd: nameEnd, valueStart: nameEnd,
                    valueEnd: bytes.count))
        }
        self.init(bytes: bytes, lines: lines)
    }

    /// Returns the value of the first line with that name, regardless of case.
    /// - Complexity: O(*n*), *n* header lines.
    public subscript(name: String) -> String? {
        var name = name
        return name.withUTF8 { name in
            for line in lines where matches(line, name) {
                return value(line)
            }
            return nil
        }
    }

    /// Returns the values of all lines with that name, in order.
    /// - Complexity: O(*n*), *n* header lines.
    public func values(_ name: String) -> [String] {
        var name = name
        return name.withUTF8 { name in
            lines.filter { matches($0, name) }.map { value($0) }
        }
    }

    /// Returns the number of lines with that name.
    /// - Complexity: O(*n*), *n* header lines.
    public func lineCount(_ name: String) -> Int {
        var name = name
        return name.withUTF8 { name in
            lines.reduce(0) { $0 + (matches($1, name) ? 1 : 0) }
        }
    }

    /// The number of header lines.
    public var count: Int { lines.count }

    /// All lines, in order.
    /// - Complexity: O(*n*), *n* header lines.
    public var fields: [HTTPField] {
        lines.map {
            HTTPField(String(decoding: bytes[$0.nameStart..<$0.nameEnd], as: UTF8.self), value($0))
        }
    }

    private func value(_ line: Line) -> String {
        String(decoding: bytes[line.valueStart..<line.valueEnd], as: UTF8.self)
    }

    private func matches(_ line: Line, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard line.nameEnd - line.nameStart == name.count else { return false }
        for position in 0..<name.count
        where lowercased(bytes[line.nameStart + position]) != lowercased(name[position]) {
            return false
        }
        return true
    }
}

/// Returns the lower-case form of an ASCII letter, and any other byte unchanged.
func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
