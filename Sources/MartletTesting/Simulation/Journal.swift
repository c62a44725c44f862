internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// The events of a simulation in words and in order, for a person to read.
struct Journal {
    /// The machine that a line is about.
    enum Machine {
        case server
        case device(Int)
    }

    /// The start of the simulation, in milliseconds since 1970.
    let start: Int64
    private(set) var lines: [String] = []

    init(start: Int64) {
        self.start = start
    }

    mutating func add(_ text: String, at machine: Machine, now: Int64) {
        let moment = now - start
        let fraction = String(moment % 1_000)
        let zeros = String(repeating: "0", count: max(0, 3 - fraction.count))
        let clock = "\(moment / 1_000).\(zeros)\(fraction) s"
        let margin = String(repeating: " ", count: max(0, 11 - clock.count))
        let who =
            switch machine {
            case .server: "server  "
            case .device(let number): "device \(number)"
            }
        lines.append("\(margin)\(clock)  \(who)  \(text)")
    }

    /// Returns a shortened identifier, which is short enough to read and long enough to find again.
    static func short(_ identifier: String) -> String {
        String(identifier.prefix(6))
    }

    /// Returns the text of a change set as the server has it.
    static func text(_ set: ChangeSet) -> String {
        var parts: [String] = []
        for changes in set.types {
            let attributes = Dictionary(
                changes.entries.map { ($0.id, $0.attributes) }, uniquingKeysWith: { $1 })
            for (word, ids) in [
                ("new ", changes.create), ("", changes.update), ("without ", changes.delete),
            ] {
                for id in ids {
                    parts.append("\(word)\(changes.name) \(id)\(text(attributes[id]))")
                }
            }
        }
        return parts.joined(separator: ", ")
    }

    /// Returns the text of a change set as its device has it.
    static func text(_ changes: [DeviceStore.QueuedChange]) -> String {
        changes.map { change in
            let word =
                switch change.operation {
                case .create: "new "
                case .update: ""
                case .delete: "without "
                }
            return "\(word)\(change.type) \(change.id)\(text(change.attributes))"
        }.joined(separator: ", ")
    }

    private static func text(_ attributes: Attributes?) -> String {
        guard let attributes, !attributes.names.isEmpty else { return "" }
        let members = zip(attributes.names, attributes.values).map { "\($0) \(text($1))" }
        return " (\(members.joined(separator: ", ")))"
    }

    /// Returns the text of a value. Texts are in quotation marks, and line ends are shown as ⏎.
    static func text(_ value: Value) -> String {
        switch value {
        case .null: "null"
        case .boolean(let flag): String(flag)
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): quoted(text)
        }
    }

    /// A value as a table stores it, in the same form; of binary data, the number of bytes.
    static func text(_ value: SQLValue) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): quoted(text)
        case .blob(let bytes): "\(bytes.count) bytes"
        }
    }

    private static func quoted(_ text: String) -> String {
        "“\(text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "⏎"))”"
    }
}

extension Simulator {
    /// Notes an event in the trace's hash, and in words if the journal is kept.
    /// - Parameter machine: The machine of the event; nil for the device of that number.
    func note(_ word: String, _ number: Int, at machine: Journal.Machine? = nil) {
        report.add(word, number)
        tell(machine ?? .device(number)) { word }
    }

    /// Adds a line to the journal. The trace's hash does not include it.
    func tell(_ machine: Journal.Machine, _ text: () -> String) {
        guard journal != nil else { return }
        journal?.add(text(), at: machine, now: now)
        if let line = journal?.lines.last { options.tell?(line) }
    }
}
