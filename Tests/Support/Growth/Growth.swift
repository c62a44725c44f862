internal import Foundation

/// Does every operation with an input and with one that is ten times as large, counts the work of both,
/// and fails when the work grows by more than the input.
///
///     Growth                       every operation, some random histories, those that found much, and a long life
///     Growth NAME…                 the operations whose names contain one of these
///     Growth --seed N [--seeds M]  the random histories of these seeds alone, and the first one's long life
///     … --all                      also says what each costs
///
/// The counts are steps of SQLite's machine, pages, requests for memory, bytes of these, and the most
/// bytes held at once; no time is among them, so a busy machine changes nothing.
@main
enum Growth {
    /// How many random histories a run without arguments tries.
    static let histories = 6
    /// Seeds of histories that found what no operation finds: many deletes while others are answered.
    static let known = [504_883]

    static func main() throws {
        var arguments = Array(CommandLine.arguments.dropFirst())
        func take(_ name: String) -> Int? {
            guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count,
                let number = Int(arguments[index + 1])
            else { return nil }
            arguments.removeSubrange(index...index + 1)
            return number
        }
        let seed = take("--seed")
        let seeds = take("--seeds")
        let saysAll = arguments.contains("--all")
        arguments.removeAll { $0 == "--all" }
        guard !arguments.contains(where: { $0.hasPrefix("-") }) else {
            say("Growth takes names of operations, --seed N, --seeds M and --all.")
            exit(64)
        }
        var operations: [Operation] = []
        if seed == nil {
            operations = Operation.all.filter { operation in
                arguments.isEmpty || arguments.contains { operation.name.contains($0) }
            }
        }
        if seed != nil || arguments.isEmpty {
            let first = seed ?? Int.random(in: 1...1_000_000)
            let count = seeds ?? (seed == nil ? histories : 1)
            let seeds = (seed == nil ? known : []) + Array(first..<first + count)
            operations += seeds.map { RandomHistory.operation(seed: $0) }
        }
        var isGood = try operations.filter { try !run($0, saysAll: saysAll) }.isEmpty
        if arguments.isEmpty {
            isGood = try live(seed: seed ?? Int.random(in: 1...1_000_000)) && isGood
        }
        exit(isGood ? 0 : 1)
    }

    /// Says what a device keeps more of the longer it is used.
    /// - Returns: Whether there is nothing of that kind.
    private static func live(seed: Int) throws -> Bool {
        let start = ContinuousClock.now
        var life = try LongLife(seed: seed)
        let grown = try life.run()
        for line in grown { say("TOO MUCH  long life of seed \(seed): \(line)") }
        say(
            "\(grown.isEmpty ? "" : "FAILED  ")long life of seed \(seed): \(ContinuousClock.now - start)"
        )
        return grown.isEmpty
    }

    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }

    /// Says which counts of an operation have grown by too much.
    /// - Returns: Whether none has.
    private static func run(_ operation: Operation, saysAll: Bool) throws -> Bool {
        let start = ContinuousClock.now
        var grown: Set<String> = []
        do {
            let small = try operation.counted(operation.size)
            let large = try operation.counted(operation.size * Operation.growth)
            grown = judge(operation, operation.size, small, large, saysAll)
            if !grown.isEmpty, operation.isRandom {
                // Something that begins at some size makes one count grow once.
                let size = operation.size * Operation.growth
                let larger = try operation.counted(size * Operation.growth)
                grown.formIntersection(judge(operation, size, large, larger, saysAll))
            }
        } catch {
            say("“\(operation.name)” failed: \(error)")
            return false
        }
        let isLinear = grown.isEmpty
        say(
            "\(isLinear ? "" : "FAILED  ")“\(operation.name)”: \(ContinuousClock.now - start)")
        return isLinear
    }

    private static func judge(
        _ operation: Operation, _ size: Int, _ small: [String: Work], _ large: [String: Work],
        _ saysAll: Bool
    ) -> Set<String> {
        var grown: Set<String> = []
        for (phase, work) in large.sorted(by: { $0.key < $1.key }) {
            for count in work.growth(from: small[phase] ?? Work(), allowed: operation.allowed) {
                guard saysAll || count.isTooMuch else { continue }
                say(
                    """
                    \(count.isTooMuch ? "TOO MUCH  " : "")“\(operation.name)”, \(phase): \
                    \(count.small) \(count.name) at \(size), \(count.large) at \
                    \(size * Operation.growth)
                    """)
                if count.isTooMuch { grown.insert("\(phase): \(count.name)") }
            }
        }
        return grown
    }
}
