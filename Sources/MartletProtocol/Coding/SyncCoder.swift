public import MartletModel

/// The exact JSON of the wire: reads and writes requests, answers, change sets and attributes.
///
/// **Written form**: compact, members in a fixed order, optional members only when present.
/// - Request: `clientId`, `protocol`, `maxRevision`, `acknowledged`, `dataSet`, `lineage`,
///   `schema`, `rows` (only when true), `answerBytes`, `request`, `check`, `changeSets`.
/// - Answer: `maxRevision`, `more` (only when true), `dataSet`, `lineage`, `schema`, `clientId`,
///   `from`, `request`, `check`, `changeSets`.
/// - Change set: `identifier`, `sequence`, `seen`, `dependencyIdentifier`, `timestamp`,
///   `revision`, `conflict`, `reason`, `message`, `retryAfter`, `difference` (only when
///   true), `types`, then one member for each
///   type in the order of `types`, always with all of `create`, `update`, `delete`, `attributes`.
/// - Attributes of a record: `__oldId__`, `revision`, then the attributes in their order.
///
/// **Reading** takes members in any order, and is strict (see `JSONReader`). Two levels of fault:
/// - What is not JSON, or a request or answer whose own members are wrong, throws: the whole body
///   is refused. Unknown members beside `changeSets` are passed over.
/// - Sound JSON with a wrong shape inside one change set gives that set a `defect`; the set keeps
///   its `identifier` and `sequence` where they could be read, and no changes. The other sets are
///   read as usual. An unknown member that cannot be a type (a scalar) is passed over.
public enum SyncCoder {
    /// Reads the body of `POST /sync`, holding it to `Limits`.
    /// - Complexity: O(*n*) in the number of bytes.
    public static func decodeRequest(_ bytes: [UInt8]) throws(WireFault) -> SyncRequest {
        try decodeRequest(bytes, limits: .request)
    }

    /// Reads a request under limits of the caller's choice.
    package static func decodeRequest(
        _ bytes: [UInt8], limits: ReadingLimits
    ) throws(WireFault) -> SyncRequest {
        var reader = SyncReader(bytes, limits: limits)
        return try reader.readRequest()
    }

    /// Reads an answer. An answer is held to `Limits.inflatedBytes` and the depth only: what the
    /// server accepted must reach every device, even where it grew beyond what a request may hold.
    public static func decodeAnswer(_ bytes: [UInt8]) throws(WireFault) -> SyncAnswer {
        var reader = SyncReader(bytes, limits: .none)
        return try reader.readAnswer()
    }

    /// Reads one change set that was stored. Here a wrong shape throws, too.
    public static func decodeChangeSet(_ bytes: [UInt8]) throws(WireFault) -> ChangeSet {
        var reader = SyncReader(bytes, limits: .none)
        return try reader.readSingleChangeSet()
    }

    /// Reads a flat object of attributes; no name has a special meaning in it.
    public static func decodeAttributes(_ bytes: [UInt8]) throws(WireFault) -> Attributes {
        var reader = SyncReader(bytes, limits: .none)
        return try reader.readAttributes()
    }

    /// - Throws: `WireFault` when a value cannot be written (NaN, infinity) or an attribute has a
    ///   name the wire uses itself.
    public static func encode(_ request: SyncRequest) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        writer.writeHead(request)
        return try writer.finish(request.changeSets)
    }

    /// - Throws: `WireFault` when a value cannot be written (NaN, infinity) or an attribute has a
    ///   name the wire uses itself.
    public static func encode(_ answer: SyncAnswer) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        try writer.writeHead(answer)
        return try writer.finish(answer.changeSets)
    }

    /// - Throws: `WireFault` when a value cannot be written (NaN, infinity) or an attribute has a
    ///   name the wire uses itself.
    public static func encode(_ changeSet: ChangeSet) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        try writer.write(changeSet)
        return writer.json.bytes
    }

    /// - Throws: `WireFault` when a value cannot be written (NaN, infinity).
    public static func encode(_ attributes: Attributes) throws(WireFault) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        for (name, value) in zip(attributes.names, attributes.values) {
            writer.name(name)
            try writer.value(value)
        }
        writer.endObject()
        return writer.bytes
    }

    /// A request up to and including `"changeSets":[`. Behind it go encoded change sets with `,`
    /// between them, then `tail`. The request's own change sets are not written.
    public static func requestHead(_ request: SyncRequest) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        writer.writeHead(request)
        return writer.json.bytes
    }

    /// An answer up to and including `"changeSets":[`; see `requestHead`.
    public static func answerHead(_ answer: SyncAnswer) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        try writer.writeHead(answer)
        return writer.json.bytes
    }

    /// What ends a request or an answer that was put together from pieces: `]}`.
    public static let tail: [UInt8] = [UInt8](("]}").utf8)
}
