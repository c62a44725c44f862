extension SyncCoder {
    /// Encodes the answer to `GET /snapshot`.
    package static func encode(_ manifest: SnapshotManifest) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("format", manifest.format)
        json.member("dataSet", manifest.dataSet)
        json.member("revision", manifest.revision)
        json.member("lineage", manifest.lineage)
        json.member("schema", manifest.schema)
        if let view = manifest.view { json.member("view", view) }
        json.name("parts")
        json.beginArray()
        for part in manifest.parts { write(part, &json) }
        json.endArray()
        json.endObject()
        return json.bytes
    }

    private static func write(_ part: SnapshotManifest.Part, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("name", part.name)
        json.member("hash", part.hash)
        write(part.plain, &json)
        json.name("types")
        json.beginObject()
        for type in part.types { json.member(type.name, type.records) }
        json.endObject()
        json.name("codings")
        json.beginObject()
        for coding in part.codings {
            json.name(coding.name)
            json.beginObject()
            write(coding.sum, &json)
            json.endObject()
        }
        json.endObject()
        json.endObject()
    }

    private static func write(_ sum: SnapshotManifest.Sum, _ json: inout JSONWriter) {
        json.member("bytes", sum.bytes)
        json.member("crc32", Int64(sum.crc32))
    }

    /// Reads the answer to `GET /snapshot`. It is as strict as all reading of the wire (see
    /// `JSONReader`); unknown members are skipped.
    /// - Throws: `WireFault` if the bytes are not JSON, a member is missing, or a value is
    ///   impossible: a name that could lead out of a folder, a text that is no hash, two parts with
    ///   one name.
    package static func decodeSnapshotManifest(
        _ bytes: [UInt8]
    ) throws(WireFault) -> SnapshotManifest {
        guard bytes.count <= Limits.manifestBytes else {
            throw WireFault("A manifest is larger than \(Limits.manifestBytes) bytes.", at: 0)
        }
        var json = JSONReader(bytes)
        let manifest = try ManifestReader.manifest(&json)
        try json.finish()
        return manifest
    }
}

/// Reads a manifest and its parts.
private enum ManifestReader {
    static func manifest(_ json: inout JSONReader) throws(WireFault) -> SnapshotManifest {
        var found = SnapshotManifest(
            format: -1, dataSet: "", revision: -1, lineage: "", schema: "", parts: [])
        try json.readObject { (json, name) throws(WireFault) in
            switch name {
            case "format": found.format = try count(&json)
            case "dataSet": found.dataSet = try self.name(&json)
            case "revision": found.revision = try count(&json)
            case "lineage": found.lineage = try self.name(&json)
            case "schema": found.schema = try self.name(&json)
            case "view": found.view = try count(&json)
            case "parts":
                try json.readArray { (json) throws(WireFault) in
                    found.parts.append(try part(&json))
                }
            default: try json.skipValue()
            }
        }
        let texts = [found.dataSet, found.lineage, found.schema]
        guard found.format >= 0, found.revision >= 0, !texts.contains(""), !found.parts.isEmpty,
            Set(found.parts.map(\.name)).count == found.parts.count
        else {
            throw WireFault(
                "A manifest lacks a member, has no parts, or two of one name.", at: json.position)
        }
        return found
    }

    private static func part(_ json: inout JSONReader) throws(WireFault) -> SnapshotManifest.Part {
        var found = SnapshotManifest.Part(
            name: "", hash: "", plain: .init(bytes: -1, crc32: 0), types: [], codings: [])
        var crc32: UInt32?
        let start = json.position
        try json.readObject { (json, name) throws(WireFault) in
            switch name {
            case "name": found.name = try self.name(&json)
            case "hash": found.hash = try self.name(&json)
            case "bytes": found.plain.bytes = try count(&json)
            case "crc32": crc32 = try checksum(&json)
            case "types":
                try json.readObject { (json, name) throws(WireFault) in
                    found.types.append(.init(name: name, records: try count(&json)))
                }
            case "codings":
                try json.readObject { (json, name) throws(WireFault) in
                    found.codings.append(.init(name: name, sum: try sum(&json)))
                }
            default: try json.skipValue()
            }
        }
        guard let crc32, found.plain.bytes > 0, isPlain(found.name), isHash(found.hash) else {
            throw WireFault("A part lacks a member, or it cannot be.", at: start, shape: true)
        }
        found.plain.crc32 = crc32
        return found
    }

    private static func sum(_ json: inout JSONReader) throws(WireFault) -> SnapshotManifest.Sum {
        var bytes: Int64 = -1
        var crc32: UInt32?
        let start = json.position
        try json.readObject { (json, name) throws(WireFault) in
            switch name {
            case "bytes": bytes = try count(&json)
            case "crc32": crc32 = try checksum(&json)
            default: try json.skipValue()
            }
        }
        guard let crc32, bytes > 0 else {
            throw WireFault("A coding lacks bytes or crc32.", at: start, shape: true)
        }
        return .init(bytes: bytes, crc32: crc32)
    }

    private static func count(_ json: inout JSONReader) throws(WireFault) -> Int64 {
        let start = json.position
        let number = try json.readInteger()
        guard number >= 0 else {
            throw WireFault("Expected a number from 0.", at: start, shape: true)
        }
        return number
    }

    private static func checksum(_ json: inout JSONReader) throws(WireFault) -> UInt32 {
        let start = json.position
        guard let number = UInt32(exactly: try json.readInteger()) else {
            throw WireFault("Expected a number of 32 bits.", at: start, shape: true)
        }
        return number
    }

    private static func name(_ json: inout JSONReader) throws(WireFault) -> String {
        let start = json.position
        let text = try json.readText()
        guard 1...Limits.nameBytes ~= text.utf8.count else {
            throw WireFault(
                "A name is empty or longer than \(Limits.nameBytes) bytes.", at: start, shape: true)
        }
        return text
    }

    /// Returns whether a name is allowed. A part's name becomes the name of a file.
    private static func isPlain(_ name: String) -> Bool {
        1...64 ~= name.utf8.count
            && name.utf8.allSatisfy { byte in
                (97...122).contains(byte) || (48...57).contains(byte) || byte == 95 || byte == 45
            }
    }

    private static func isHash(_ text: String) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}
