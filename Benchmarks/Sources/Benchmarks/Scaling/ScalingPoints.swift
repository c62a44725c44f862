import Foundation

/// Which points of a series are measured: all, or those that the command line names, such as
/// `records=1000,10000 devices=`.
enum ScalingPoints {
    static func chosen(_ name: String, of all: [Int]) throws -> [Int] {
        guard let word = CommandLine.arguments.last(where: { $0.hasPrefix(name + "=") }) else {
            return all
        }
        return try word.dropFirst(name.count + 1).split(separator: ",").map { text in
            guard let point = Int(text), all.contains(point) else {
                let known = all.map(String.init).joined(separator: ",")
                throw BenchmarkFailure("\(name) are of \(known), not “\(text)”.")
            }
            return point
        }
    }
}
