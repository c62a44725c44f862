package import MartletModel

/// Reads and writes the exact JSON of the wire: requests, answers, change sets and attributes.
///
/// **Written form**: compact, members in a fixed order, optional members only if they are present.
/// - Request: `clientId`, `protocol`, `maxRevision`, `acknowledged`, `dataSet`, `lineage`,
///   `partOf`, `goal`, `schema`, `rules`, `rows` (only when true), `answerBytes`, `request`,
///   `purged`, `check`, `changeSets`.
/// - Answer: `maxRevision`, `more` (only when true), `dataSet`, `lineage`, `schema`, `clientId`,
///   `from`, `request`, `view`, `rules`, `check`, `changeSets`.
/// - Change set: `identifier`, `sequence`, `seen`, `dependencyIdentifier`, `timestamp`, `revision`,
///   `conflict`, `reason`, `message`, `retryAfter`, `difference` and `part` (each only when true),
///   `types`, then one member for each type in the order of `types`, always with all of `create`,
///   `update`, `delete`, `hidden` (only if there are any), `attributes`.
/// - Attributes of a record: `__oldId__`, `revision`, then the attributes in their order.
///
/// **Reading** accepts members in any order, and is strict (see `JSONReader`). There are two levels
/// of faults:
/// - Bytes that are not JSON, and a request or answer whose own members are wrong, throw an error:
///   the whole body is refused. Unknown members next to `changeSets` are skipped.
/// - Sound JSON with a wrong shape inside one change set gives that set a `defect`. The set keeps
///   its `identifier` and `sequence` if they could be read, and no changes. The other sets are read
///   as usual. An unknown member that cannot be a type (a scalar) is skipped.
package enum SyncCoder {
    /// Reads the body of `POST /sync`, within `Limits`.
    /// - Complexity: O(*n*) in the number of bytes.
    /// - Throws: `WireFault` if the body is refused.
    package static func decodeRequest(_ bytes: [UInt8]) throws(WireFault) -> SyncRequest {
        try decodeRequest(bytes, limits: .request)
    }

    /// Reads a request within the caller's limits.
    package static func decodeRequest(
        _ bytes: [UInt8], limits: ReadingLimits
    ) throws(WireFault) -> SyncRequest {
        var reader = SyncReader(bytes, limits: limits)
        return try reader.readRequest()
    }

    /// Reads an answer, within `Limits.inflatedBytes` and the depth only: a set that the server has
    /// accepted must reach every device, even if it has grown beyond the limits of a request.
    /// - Complexity: O(*n*) in the number of bytes.
    /// - Throws: `WireFault` if the answer is refused.
    package static func decodeAnswer(_ bytes: [UInt8]) throws(WireFault) -> SyncAnswer {
        var reader = SyncReader(bytes, limits: .none)
        return try reader.readAnswer()
    }

    /// Reads one change set that was stored.
    /// - Throws: `WireFault` if the bytes are not JSON, and also for a wrong shape.
    package static func decodeChangeSet(_ bytes: [UInt8]) throws(WireFault) -> ChangeSet {
        var reader = SyncReader(bytes, limits: .none)
        return try reader.readSingleChangeSet()
    }

    /// Reads a flat object of attributes. No name has a special meaning in it.
    /// - Throws: `WireFault` if the bytes are no such object.
    package static func decodeAttributes(_ bytes: [UInt8]) throws(WireFault) -> Attributes {
        var reader = SyncReader(bytes, limits: .none)
        return try reader.readAttributes()
    }

    /// Encodes a request.
    /// - Throws: `WireFault` if a value cannot be written (NaN, infinity) or an attribute has a
    ///   name that the wire uses itself.
    package static func encode(_ request: SyncRequest) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        writer.writeHead(request)
        return try writer.finish(request.changeSets)
    }

    /// Encodes an answer.
    /// - Throws: `WireFault` if a value cannot be written (NaN, infinity) or an attribute has a
    ///   name that the wire uses itself.
    package static func encode(_ answer: SyncAnswer) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        try writer.writeHead(answer)
        return try writer.finish(answer.changeSets)
    }

    /// Encodes a change set.
    /// - Throws: `WireFault` if a value cannot be written (NaN, infinity) or an attribute has a
    ///   name that the wire uses itself.
    package static func encode(_ changeSet: ChangeSet) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        try writer.write(changeSet)
        return writer.json.bytes
    }

    /// Encodes a change set whose attributes are encoded already.
    /// - Parameter attributes: The attributes of each entry, in the order of the entries, as `encode` has
    ///   written them. No name among them is one that the wire uses itself.
    package static func encode(
        _ changeSet: ChangeSet, attributes: [[UInt8]]
    ) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        writer.encoded = attributes[...]
        try writer.write(changeSet)
        return writer.json.bytes
    }

    /// Encodes attributes.
    /// - Throws: `WireFault` if a value cannot be written (NaN, infinity).
    package static func encode(_ attributes: Attributes) throws(WireFault) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        for (name, value) in zip(attributes.names, attributes.values) {
            writer.name(name)
            try writer.value(value)
        }
        writer.endObject()
        return writer.bytes
    }

    /// Encodes a request up to and including `"changeSets":[`. The caller appends encoded change
    /// sets with `,` between them, then `tail`. The request's own change sets are not written.
    /// - Throws: No error at present.
    package static func requestHead(_ request: SyncRequest) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        writer.writeHead(request)
        return writer.json.bytes
    }

    /// Encodes an answer up to and including `"changeSets":[`; see `requestHead`.
    /// - Throws: `WireFault` if a value of its `check` cannot be written (NaN, infinity).
    package static func answerHead(_ answer: SyncAnswer) throws(WireFault) -> [UInt8] {
        var writer = SyncWriter()
        try writer.writeHead(answer)
        return writer.json.bytes
    }

    /// The end of a request or an answer that is put together from pieces: `]}`.
    package static let tail: [UInt8] = [UInt8](("]}").utf8)
}
