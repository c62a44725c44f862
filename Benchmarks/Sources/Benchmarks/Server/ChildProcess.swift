import CLoad
import Foundation

/// A process whose cost is measured from outside: this program again, in another role.
///
/// It prints the port it listens on and ends when its standard input does, so that it never
/// outlives a benchmark that is broken off.
final class ChildProcess {
    let port: UInt16
    private let process = Process()
    private let input = Pipe()

    /// This program in another role.
    convenience init(_ arguments: [String]) throws {
        try self.init(
            program: URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path,
            arguments)
    }

    /// A program whose first line ends with the port it listens on.
    init(program: String, _ arguments: [String]) throws {
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else { break }
            line += part
        }
        let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .newlines)
        guard let port = text.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw BenchmarkFailure("\(arguments) did not say on which port it listens.")
        }
        self.port = port
    }

    /// CPU seconds used so far.
    var seconds: Double { process_seconds(process.processIdentifier) }

    /// Resident bytes now, and at most since `forgetPeak`.
    var resident: (now: Int, peak: Int) {
        let path = "/proc/\(process.processIdentifier)/status"
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        func kibibytes(_ name: String) -> Int {
            let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
            return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
        }
        return (kibibytes("VmRSS:") * 1_024, kibibytes("VmHWM:") * 1_024)
    }

    /// The number of open files and sockets.
    var descriptors: Int {
        let path = "/proc/\(process.processIdentifier)/fd"
        return (try? FileManager.default.contentsOfDirectory(atPath: path))?.count ?? 0
    }

    func forgetPeak() {
        let path = "/proc/\(process.processIdentifier)/clear_refs"
        guard let file = FileHandle(forWritingAtPath: path) else { return }
        try? file.write(contentsOf: Data("5".utf8))
        try? file.close()
    }

    func stop() {
        try? input.fileHandleForWriting.close()
        // The released server does not listen to its standard input.
        if process.arguments?.first == "serve" { process.terminate() }
        process.waitUntilExit()
    }
}

/// A benchmark that did not do what it should measure.
struct BenchmarkFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
