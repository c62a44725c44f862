// The entry of libFuzzer, compiled into one module with the sources of MartletProtocol by
// `scripts/fuzz`; no target of the package.

/// Reads the bytes as each message. What is read must be writable, and read back as the same.
@_cdecl("LLVMFuzzerTestOneInput")
func fuzzSyncCoder(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = [UInt8](UnsafeBufferPointer(start: start, count: count))
    if let request = try? SyncCoder.decodeRequest(bytes), isSound(request.changeSets) {
        let again = try? SyncCoder.decodeRequest(SyncCoder.encode(request))
        precondition(again == request, "a request changed when written and read again")
    }
    if let answer = try? SyncCoder.decodeAnswer(bytes), isSound(answer.changeSets) {
        let again = try? SyncCoder.decodeAnswer(SyncCoder.encode(answer))
        precondition(again == answer, "an answer changed when written and read again")
    }
    if let attributes = try? SyncCoder.decodeAttributes(bytes) {
        let again = try? SyncCoder.decodeAttributes(SyncCoder.encode(attributes))
        precondition(again == attributes, "attributes changed when written and read again")
    }
    _ = SyncCoder.decodeProblem(bytes, status: 500)
    return 0
}

private func isSound(_ sets: [ChangeSet]) -> Bool {
    for set in sets where set.defect != nil {
        precondition(set.types.isEmpty, "a defective set has changes")
    }
    return sets.allSatisfy { $0.defect == nil }
}
