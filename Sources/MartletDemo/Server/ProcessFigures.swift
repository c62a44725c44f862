import Foundation

/// The kernel's figures of one process, or the sums of several.
struct ProcessFigures: Hashable, Sendable {
    /// The process's own resident memory in KiB, without mapped programs and files, which the
    /// system adds and removes.
    var memory = 0
    /// The sizes of its data files together, in KiB, where they are watched.
    var files = 0
    var descriptors = 0
    var threads = 0
    /// Processor time used so far, in seconds.
    var processorSeconds = 0.0

    /// Whether this system reports the figures.
    static var areKnown: Bool { FileManager.default.fileExists(atPath: "/proc/self/status") }

    init() {}

    /// - Returns: The figures; nil if there is no such process.
    init?(of process: Int32) {
        let folder = "/proc/\(process)"
        guard let status = try? String(contentsOfFile: folder + "/status", encoding: .utf8),
            let (_, times) = Self.stat(process)
        else { return nil }
        let lines = status.split(separator: "\n")
        func number(_ name: String) -> Int {
            let line = lines.first { $0.hasPrefix(name + ":") }
            return line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
        }
        memory = number("RssAnon")
        threads = number("Threads")
        let files = try? FileManager.default.contentsOfDirectory(atPath: folder + "/fd")
        descriptors = files?.count ?? 0
        // In proc(5), utime and stime are fields 14 and 15. The first three are removed here.
        let ticks = times.count > 12 ? (Double(times[11]) ?? 0) + (Double(times[12]) ?? 0) : 0
        processorSeconds = ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    static func + (one: ProcessFigures, other: ProcessFigures) -> ProcessFigures {
        var sum = one
        sum.memory += other.memory
        sum.files += other.files
        sum.descriptors += other.descriptors
        sum.threads += other.threads
        sum.processorSeconds += other.processorSeconds
        return sum
    }

    /// Returns the processes with a name that a process, or one of its descendants, has started.
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

    /// Returns a process's command, and the fields after it, which begin with its state.
    private static func stat(_ process: Int32) -> (command: Substring, fields: [Substring])? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let start = text.firstIndex(of: "("), let end = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        return (text[text.index(after: start)..<end], fields)
    }
}

/// Processes that a soak watches together.
struct WatchedProcesses: Sendable {
    let name: String
    /// The figures that must not grow.
    let judged: Set<SoakFigure>
    /// The folder of their data files, where it counts.
    let folder: String?
    let find: @Sendable () -> [Int32]

    init(
        name: String, judged: Set<SoakFigure> = SoakFigure.lasting, folder: String? = nil,
        find: @escaping @Sendable () -> [Int32]
    ) {
        self.name = name
        self.judged = judged
        self.folder = folder
        self.find = find
    }

    /// Returns the sums of the present figures.
    func look() -> ProcessFigures {
        var figures = find().compactMap { ProcessFigures(of: $0) }.reduce(ProcessFigures(), +)
        if let folder { figures.files = Self.size(of: folder) / 1_024 }
        return figures
    }

    /// Returns the number of bytes of a folder's databases, without those in its subfolders.
    private static func size(of folder: String) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(".sqlite") }.reduce(0) { sum, name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")
            return sum + ((attributes?[.size] as? NSNumber)?.intValue ?? 0)
        }
    }
}
