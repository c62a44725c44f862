/// Lets operations fail on purpose, so that a test can stand for a full disk or a killed process.
public struct FileFaults: Sendable {
    let decide: @Sendable (FileOperation) -> Int32?

    /// - Parameter decide: Asked before each operation; a number (`errno`) makes it fail with that
    ///   number, and nothing is done.
    public init(_ decide: @escaping @Sendable (FileOperation) -> Int32?) {
        self.decide = decide
    }

    func check(_ operation: FileOperation) throws(SystemError) {
        guard let number = decide(operation) else { return }
        throw SystemError(operation, number: number)
    }
}
