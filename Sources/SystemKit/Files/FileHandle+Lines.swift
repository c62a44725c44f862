package import Foundation

extension FileHandle {
    /// Returns the lines that come out of a pipe, in order, for one reader. A thread of its own
    /// reads them; the stream ends with the pipe. A last line without a line feed is left out.
    package func incomingLines() -> AsyncStream<String> {
        let (lines, line) = AsyncStream<String>.makeStream()
        Thread.detachNewThread { [self] in
            var rest = Data()
            while case let part = availableData, !part.isEmpty {
                rest += part
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    line.yield(String(decoding: rest[..<end], as: UTF8.self))
                    rest = Data(rest[rest.index(after: end)...])
                }
            }
            line.finish()
        }
        return lines
    }
}
