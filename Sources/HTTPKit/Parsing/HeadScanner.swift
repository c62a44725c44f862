/// Finds the end of a request's head in bytes that arrive piece by piece. It refuses a head early
/// if no later byte can correct it.
///
/// It looks at each byte once, even if the bytes arrive slowly.
struct HeadScanner {
    private var scanned = 0
    private var lineStart = 0
    private var lineNumber = 0

    /// Looks for the end of the head.
    /// - Parameter bytes: All bytes from the start of the head, never fewer than in the last call.
    /// - Returns: The number of bytes of the head, including its empty line; nil if the head is not
    ///   complete.
    /// - Throws: `HTTPRefusal` for a line that does not end in CR LF, for a folded line, and for a
    ///   head over `limit` bytes.
    mutating func end(
        in bytes: UnsafeRawBufferPointer, limit: Int
    ) throws(HTTPRefusal) -> Int? {
        let end = min(bytes.count, limit)
        while scanned < end {
            let byte = bytes[scanned]
            scanned += 1
            guard byte == UInt8(ascii: "\n") else { continue }
            guard scanned - 2 >= lineStart, bytes[scanned - 2] == UInt8(ascii: "\r") else {
                throw .badRequest("A header line ends in LF alone; lines end in CR LF.")
            }
            if scanned - lineStart == 2, lineNumber > 0 { return scanned }
            if lineNumber > 0 {
                let first = bytes[lineStart]
                guard first != UInt8(ascii: " "), first != UInt8(ascii: "\t") else {
                    throw .badRequest("A header line is folded; send each header on one line.")
                }
            }
            // An empty line before the request line is skipped (RFC 9112 §2.2). It counts towards
            // the limit, so there can be no flood of such lines.
            if scanned - lineStart > 2 { lineNumber += 1 }
            lineStart = scanned
        }
        if bytes.count >= limit {
            throw HTTPRefusal(
                status: 431, kind: "headTooLarge",
                detail: "The request's head is larger than \(limit) bytes.")
        }
        return nil
    }
}
