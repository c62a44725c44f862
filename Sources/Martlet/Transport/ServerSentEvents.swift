/// Reads a stream of server-sent events, in pieces of any size.
///
/// It follows the rules of the HTML standard (9.2.6). Lines end with CR, LF or both. A leading byte
/// order mark is skipped. A line that begins with a colon is a comment. An event ends with an empty
/// line, and an unfinished event at the stream's end is dropped. Bytes are not decoded here; the
/// reader of the data checks them.
struct ServerSentEvents: Sendable {
    struct Event: Hashable, Sendable {
        /// The event's name; `message` if the stream gives none.
        var name: String
        /// The event's lines, with line feeds between them.
        var data: [UInt8]
        /// The last identifier in the stream, in this event or before; empty if there was none.
        var identifier: String
    }

    /// The failure for an event that is larger than the limit. Nothing can be read after it.
    struct TooLarge: Error, Hashable, Sendable {
        let limit: Int
    }

    /// The milliseconds to wait before reconnecting, as the stream asks.
    private(set) var retry: Int64?
    /// The identifier that a new connection names in `Last-Event-ID`.
    private(set) var lastIdentifier = ""

    /// Returns the first number that came as a comment since the last call, and forgets it; nil if
    /// there was none. It is the time of the server's sign of life, in milliseconds.
    mutating func takeSign() -> Int64? { sign.take() }

    /// Whether part of an event has arrived.
    var isInEvent: Bool {
        (line.first ?? Self.colon) != Self.colon || hasData || !name.isEmpty || identifier != nil
    }

    private let limit: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var name = ""
    /// The identifier that was named since the last event ended.
    private var identifier: String?
    /// Whether the last line ended with CR; a line feed that comes next belongs to it.
    private var endedWithReturn = false
    private var isFirstLine = true
    private var sign: Int64?

    /// Creates a reader.
    /// - Parameter limit: The maximum bytes of one event and of one line.
    init(limit: Int) {
        self.limit = limit
    }

    /// Reads the next bytes of the stream.
    /// - Returns: The events that they complete.
    /// - Throws: `TooLarge` if an event or a line exceeds the limit.
    mutating func read(_ bytes: some Sequence<UInt8>) throws(TooLarge) -> [Event] {
        try read([UInt8](bytes))
    }

    /// Reads the next bytes of the stream.
    /// - Returns: The events that they complete.
    /// - Throws: `TooLarge` if an event or a line exceeds the limit.
    mutating func read(_ bytes: [UInt8]) throws(TooLarge) -> [Event] {
        var events: [Event] = []
        var start = 0
        while start < bytes.count {
            if endedWithReturn {
                endedWithReturn = false
                if bytes[start] == Self.lineFeed {
                    start += 1
                    continue
                }
            }
            let end =
                bytes[start...].firstIndex { $0 == Self.lineFeed || $0 == Self.carriageReturn }
                ?? bytes.count
            guard line.count + data.count + end - start <= limit else {
                throw TooLarge(limit: limit)
            }
            line += bytes[start..<end]
            guard end < bytes.count else { break }
            endedWithReturn = bytes[end] == Self.carriageReturn
            if let event = endLine() { events.append(event) }
            start = end + 1
        }
        return events
    }

    /// The largest number, in milliseconds, that counts as a sign of life.
    private static let longestLife: Int64 = 1 << 53
    private static let lineFeed: UInt8 = 10
    private static let carriageReturn: UInt8 = 13
    private static let colon = UInt8(ascii: ":")

    /// Handles the line that has ended. Returns the event that an empty line ends.
    private mutating func endLine() -> Event? {
        defer { line.removeAll(keepingCapacity: true) }
        if isFirstLine {
            isFirstLine = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        }
        if line.isEmpty { return endEvent() }
        guard let colon = line.firstIndex(of: Self.colon) else {
            take(field: line[...], value: [])
            return nil
        }
        var value = line[(colon + 1)...]
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        take(field: line[..<colon], value: value)
        return nil
    }

    private mutating func take(field: ArraySlice<UInt8>, value: ArraySlice<UInt8>) {
        switch String(decoding: field, as: UTF8.self) {
        case "data":
            if hasData { data.append(Self.lineFeed) }
            hasData = true
            data += value
        case "event": name = String(decoding: value, as: UTF8.self)
        case "id" where !value.contains(0):
            identifier = String(decoding: value, as: UTF8.self)
        case "retry" where value.allSatisfy({ (0x30...0x39).contains($0) }):
            retry = Int64(String(decoding: value, as: UTF8.self)) ?? retry
        case "":
            let number = Int64(String(decoding: value, as: UTF8.self)) ?? -1
            if sign == nil, 0...Self.longestLife ~= number { sign = number }
        default: break
        }
    }

    private mutating func endEvent() -> Event? {
        defer {
            data = []
            hasData = false
            name = ""
        }
        if let identifier { lastIdentifier = identifier }
        identifier = nil
        guard hasData else { return nil }
        return Event(
            name: name.isEmpty ? "message" : name, data: data, identifier: lastIdentifier)
    }
}
