internal import MartletModel

extension SyncWriter {
    mutating func write(_ check: CheckRequest) {
        json.beginObject()
        json.member("revision", check.revision)
        json.name("types")
        json.beginArray()
        for type in check.types {
            json.beginObject()
            json.member("type", type.name)
            json.name("attributes")
            json.beginObject()
            for attribute in type.attributes { json.member(attribute.name, attribute.kind) }
            json.endObject()
            json.name("ranges")
            json.beginArray()
            for range in type.ranges {
                json.beginArray()
                write(range.from)
                write(range.below)
                write(range.hash)
                json.endArray()
            }
            json.endArray()
            json.endObject()
        }
        json.endArray()
        json.endObject()
    }

    mutating func write(_ check: CheckAnswer) throws(WireFault) {
        json.beginObject()
        json.member("revision", check.revision)
        json.member("behind", check.isBehind ? true : nil)
        json.name("types")
        json.beginArray()
        for type in check.types { try write(type) }
        json.endArray()
        json.endObject()
    }

    private mutating func write(_ type: TypeVerdict) throws(WireFault) {
        json.beginObject()
        json.member("type", type.name)
        json.member("unknown", type.isUnknown ? true : nil)
        if !type.unknownAttributes.isEmpty {
            json.name("unknownAttributes")
            json.beginArray()
            for name in type.unknownAttributes { json.text(name) }
            json.endArray()
        }
        json.name("ranges")
        json.beginArray()
        for range in type.ranges { try write(range) }
        json.endArray()
        json.endObject()
    }

    private mutating func write(_ range: RangeVerdict) throws(WireFault) {
        switch range {
        case .equal: json.boolean(true)
        case .hash(let hash, let without):
            json.beginObject()
            json.name("hash")
            json.beginArray()
            write(hash)
            json.endArray()
            write("without", without)
            json.endObject()
        case .rows(let found):
            json.beginObject()
            json.name("rows")
            json.beginArray()
            for row in found.rows {
                json.beginArray()
                write(row.id)
                json.integer(row.revision ?? 0)
                json.beginObject()
                for (name, value) in zip(row.attributes.names, row.attributes.values) {
                    json.name(name)
                    try json.value(value)
                }
                json.endObject()
                json.endArray()
            }
            json.endArray()
            if let next = found.next {
                json.name("next")
                write(next)
            }
            write("without", found.without)
            json.endObject()
        }
    }

    mutating func write(_ receipt: PurgeReceipt) {
        json.beginObject()
        json.member("view", receipt.view)
        json.member("revision", receipt.revision)
        json.name("removed")
        json.beginArray()
        write(receipt.removed)
        json.endArray()
        json.endObject()
    }

    private mutating func write(_ hash: RangeHash) {
        json.integer(hash.count)
        json.text(hash.text)
    }

    private mutating func write(_ id: RecordID?) {
        switch id {
        case .integer(let number): json.integer(number)
        case .text(let text): json.text(text)
        case nil: json.null()
        }
    }

    private mutating func write(_ name: String, _ ids: [RecordID]) {
        guard !ids.isEmpty else { return }
        json.name(name)
        json.beginArray()
        for id in ids { write(id) }
        json.endArray()
    }
}

extension RangeHash {
    /// The sum in the form of the wire: 16 hexadecimal digits.
    package var text: String {
        let digits = String(sum, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
