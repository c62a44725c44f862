internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletStore

/// A whole world as text: the server's records, and the differences of each device from them. Equal
/// worlds have equal texts.
public struct WorldText: Hashable, Sendable, CustomStringConvertible {
    /// The lines. Each names its server or device, so that it can be read alone.
    public let lines: [String]

    init(lines: [String]) {
        self.lines = lines
    }

    /// Takes the lines of a text.
    package init(_ text: String) {
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    public var description: String { lines.joined(separator: "\n") }

    /// Returns the lines that only the other world has, marked “-”, and those that only this one
    /// has, marked “+”, in order; empty if the worlds are equal.
    public func difference(from other: WorldText) -> String {
        let changes = lines.difference(from: other.lines)
        let marked = changes.map { change in
            switch change {
            case .remove(let offset, let line, _): (offset, 0, "- \(line)")
            case .insert(let offset, let line, _): (offset, 1, "+ \(line)")
            }
        }
        return marked.sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.2).joined(separator: "\n")
    }
}

extension SimulatedWorld {
    /// Returns the whole world as it is now.
    /// - Throws: `SimulationFailure` if a file cannot be read.
    public func text() throws -> WorldText {
        try guarded {
            let truth = try engine.server.isUp ? engine.server.state() : [:]
            var lines = [
                engine.server.isUp
                    ? "server    revision \(engine.model.revision)" : "server    off"
            ]
            for (type, records) in truth.sorted(by: { $0.key < $1.key }) {
                for (id, record) in records.sorted(by: { $0.key < $1.key }) {
                    lines.append("server    \(type) \(id): \(Self.text(record))")
                }
            }
            for machine in engine.devices { lines += try text(of: machine, truth) }
            return WorldText(lines: lines)
        }
    }

    private func text(
        of machine: DeviceMachine, _ truth: [String: [RecordID: [String: Value]]]
    ) throws -> [String] {
        let name = "device \(machine.number)  "
        guard let store = machine.node?.store else { return ["\(name)off"] }
        let parked = try store.parked()
        var lines = [
            "\(name)revision \(try store.revision), \(try store.outboxCount) sets to be sent,"
                + " \(parked.count) refused"
        ]
        let shown = try store.shownState()
        for type in Set(truth.keys).union(shown.keys).sorted() {
            let (there, here) = (truth[type] ?? [:], shown[type] ?? [:])
            for id in Set(there.keys).union(here.keys).sorted() where there[id] != here[id] {
                lines.append(
                    here[id].map { "\(name)\(type) \(id): \(Self.text($0))" }
                        ?? "\(name)lacks \(type) \(id)")
            }
        }
        for set in parked {
            let changes = set.changes.map { change in
                let mine = change.mine.map { ": \(Self.text($0))" } ?? ""
                return "\(change.operation.rawValue) \(change.type) \(change.id)\(mine)"
            }
            lines.append("\(name)refused (\(set.message)) \(changes.joined(separator: "; "))")
        }
        return lines
    }

    private static func text(_ record: [String: Value]) -> String {
        record.sorted { $0.key < $1.key }.map { "\($0.key) \(Journal.text($0.value))" }
            .joined(separator: ", ")
    }

    private static func text(_ values: RecordValues) -> String {
        zip(values.names, values.values).map { "\($0) \(Journal.text($1))" }
            .joined(separator: ", ")
    }
}
