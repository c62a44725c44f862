/// Makes operations fail on purpose, so that a test can simulate a full disk or a killed process.
public struct FileFaults: Sendable {
    let decide: @Sendable (FileOperation) -> Int32?

    /// - Parameter decide: Called before each operation. If it returns a number (`errno`), the
    ///   operation does nothing and fails with that number.
    public init(_ decide: @escaping @Sendable (FileOperation) -> Int32?) {
        self.decide = decide
    }

    func check(_ operation: FileOperation) throws(SystemError) {
        guard let number = decide(operation) else { return }
        throw SystemError(operation, number: number)
    }
}
