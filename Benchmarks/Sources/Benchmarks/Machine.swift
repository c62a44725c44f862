import Foundation

/// What the figures were taken on.
enum Machine {
    static let current: String = {
        let process = ProcessInfo.processInfo
        let system = process.operatingSystemVersionString
        return "\(processor), \(process.activeProcessorCount) cores, \(system)"
    }()

    private static var processor: String {
        guard let text = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("model name") }),
            let colon = line.firstIndex(of: ":")
        else { return "unknown processor" }
        return line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }

    /// CPU seconds this process has used, user and system.
    static var processorSeconds: Double {
        var usage = rusage()
        #if canImport(Darwin)
            getrusage(RUSAGE_SELF, &usage)
        #else
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #endif
        func seconds(_ time: timeval) -> Double {
            Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000
        }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// KiB, from the kernel's account of this process, such as `VmRSS`.
    static func memory(_ name: String) throws -> Double {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        guard let number = line?.split(whereSeparator: { !$0.isNumber }).first,
            let value = Double(number)
        else { throw BenchmarkFailure("The kernel tells no \(name).") }
        return value
    }

    /// Lets the kernel's peak begin again at what is resident now (proc(5), clear_refs).
    static func forgetPeak() throws {
        try "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
    }
}
