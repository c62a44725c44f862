import Foundation

/// A psql that stays open: what an analyst types.
final class SQLSession {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var rest = Data()
    private static let mark = "end-of-answer"
    /// The server's process for this session.
    private(set) var backend: pid_t = 0

    init(_ url: String) throws {
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        backend = pid_t(try run("SELECT pg_backend_pid();").first ?? "") ?? 0
    }

    /// Runs statements, each with its semicolon.
    /// - Returns: The lines psql printed.
    @discardableResult
    func run(_ sql: String) throws -> [String] {
        try input.fileHandleForWriting.write(
            contentsOf: Data("\(sql)\n\\echo \(Self.mark)\n".utf8))
        var lines: [String] = []
        while true {
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: rest[..<end], as: UTF8.self)
                rest = Data(rest[rest.index(after: end)...])
                if line == Self.mark { return lines }
                if !line.isEmpty { lines.append(line) }
            }
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else {
                throw BenchmarkFailure("psql ended while it ran: \(sql.prefix(200))")
            }
            rest += part
        }
    }

    func stop() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}

/// A program of the databases' own that measures what they can do at most.
enum FloorProgram {
    /// - Returns: What it printed.
    static func run(_ arguments: [String], input: String? = nil) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let said = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchmarkFailure(
                "\(arguments[0]) failed: \(String(decoding: said, as: UTF8.self))")
        }
        return String(decoding: said, as: UTF8.self)
    }
}
