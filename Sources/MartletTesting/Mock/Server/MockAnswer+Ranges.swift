extension MockAnswer {
    /// Returns the requested range of a file (RFC 9110 §14), and sets status and headers
    /// accordingly. An `ETag` in the script's headers is compared with `If-Range`.
    mutating func takeRange(of file: [UInt8], for request: MockRequest) -> [UInt8] {
        headers.append(("Accept-Ranges", "bytes"))
        if !names("Content-Type") { headers.append(("Content-Type", "application/octet-stream")) }
        guard status == 200, let range = request.headers["range"] else { return file }
        let tag = headers.first { $0.name.lowercased() == "etag" }?.value
        if let wanted = request.headers["if-range"], wanted != tag { return file }
        guard range.hasPrefix("bytes="), !range.contains(",") else { return file }
        let bounds = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = Int(bounds[0]) else { return file }
        let last = min(Int(bounds[1]) ?? .max, file.count - 1)
        guard first <= last else {
            status = 416
            headers.append(("Content-Range", "bytes */\(file.count)"))
            return []
        }
        status = 206
        headers.append(("Content-Range", "bytes \(first)-\(last)/\(file.count)"))
        return Array(file[first...last])
    }

    private func names(_ header: String) -> Bool {
        headers.contains { $0.name.lowercased() == header.lowercased() }
    }
}
