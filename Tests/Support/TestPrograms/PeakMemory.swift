internal import Foundation

/// The most memory this process has held, as Linux counts it; elsewhere nothing is measured.
package enum PeakMemory {
    /// Begins to measure anew.
    package static func reset() {
        // 5 resets the peak (proc(5), clear_refs).
        try? Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
    }

    /// Bytes held at most since the last reset; nil where that is not known.
    package static var bytes: Int? { value(of: "VmHWM") }

    /// Bytes held now; nil where that is not known.
    package static var residentBytes: Int? { value(of: "VmRSS") }

    private static func value(of name: String) -> Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix(name + ":") })
        else { return nil }
        return line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) }.map {
            $0 * 1_024
        }
    }
}
