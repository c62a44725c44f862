import Foundation

/// What the kernel tells of processes: of one, or of several together.
struct ProcessFigures: Hashable, Sendable {
    /// Resident memory in KiB, without what processes share on purpose.
    var memory = 0
    var descriptors = 0
    var threads = 0
    /// Processor time used so far, in seconds.
    var processorSeconds = 0.0

    /// Whether this system tells.
    static var areKnown: Bool { FileManager.default.fileExists(atPath: "/proc/self/status") }

    init() {}

    /// - Returns: nil for a process that is not there.
    init?(of process: Int32) {
        let place = "/proc/\(process)"
        guard let status = try? String(contentsOfFile: place + "/status", encoding: .utf8),
            let (_, times) = Self.stat(process)
        else { return nil }
        let lines = status.split(separator: "\n")
        func number(_ name: String) -> Int {
            let line = lines.first { $0.hasPrefix(name + ":") }
            return line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
        }
        memory = number("VmRSS") - number("RssShmem")
        threads = number("Threads")
        let files = try? FileManager.default.contentsOfDirectory(atPath: place + "/fd")
        descriptors = files?.count ?? 0
        // proc(5): utime and stime are fields 14 and 15; the first three are gone.
        let ticks = times.count > 12 ? (Double(times[11]) ?? 0) + (Double(times[12]) ?? 0) : 0
        processorSeconds = ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    static func + (one: ProcessFigures, other: ProcessFigures) -> ProcessFigures {
        var sum = one
        sum.memory += other.memory
        sum.descriptors += other.descriptors
        sum.threads += other.threads
        sum.processorSeconds += other.processorSeconds
        return sum
    }

    /// The processes of a name that were started by a process, or by one that it started.
    static func descendants(of root: Int32, named name: String) -> [Int32] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        var children: [Int32: [(Int32, Substring)]] = [:]
        for process in all.compactMap({ Int32($0) }) {
            guard let (command, fields) = stat(process), let parent = fields.dropFirst().first,
                let parent = Int32(parent)
            else { continue }
            children[parent, default: []].append((process, command))
        }
        var found: [Int32] = []
        var open = [root]
        while let next = open.popLast() {
            for (process, command) in children[next] ?? [] {
                open.append(process)
                if command == name { found.append(process) }
            }
        }
        return found
    }

    /// A process's command, and the fields after it, beginning with its state.
    private static func stat(_ process: Int32) -> (command: Substring, fields: [Substring])? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let start = text.firstIndex(of: "("), let end = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        return (text[text.index(after: start)..<end], fields)
    }
}

/// Processes that are looked at together, while a soak runs.
struct WatchedProcesses: Sendable {
    let name: String
    /// What must not grow.
    let judged: Set<SoakFigure>
    let find: @Sendable () -> [Int32]

    init(name: String, judged: Set<SoakFigure>, find: @escaping @Sendable () -> [Int32]) {
        self.name = name
        self.judged = judged
        self.find = find
    }

    static func server(_ server: ServerProcess, name: String) -> WatchedProcesses {
        let identifier = server.identifier
        return WatchedProcesses(name: name, judged: Set(SoakFigure.allCases)) { [identifier] }
    }

    /// What they use now, all together.
    func look() -> ProcessFigures {
        find().compactMap { ProcessFigures(of: $0) }.reduce(ProcessFigures(), +)
    }
}
