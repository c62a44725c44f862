internal import MartletModel
internal import MartletProtocol

extension ScriptNode {
    /// The value as JSON without white space, with numbers and texts as they were written.
    var compact: [UInt8] {
        var json = JSONWriter()
        write(to: &json)
        return json.bytes
    }

    private func write(to json: inout JSONWriter) {
        switch content {
        case .scalar: json.raw(source)
        case .list(let elements):
            json.beginArray()
            for element in elements { element.write(to: &json) }
            json.endArray()
        case .object(let members):
            json.beginObject()
            for member in members {
                json.name(member.name)
                member.value.write(to: &json)
            }
            json.endObject()
        }
    }

    /// The batch of deltas that this value describes. It is as written, with two differences: the
    /// attributes in `p` become a text if they are an object, and a missing `t` is added.
    var batch: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        for member in members {
            json.name(member.name)
            guard member.name == "deltas", case .list(let deltas) = member.value.content else {
                member.value.write(to: &json)
                continue
            }
            json.beginArray()
            for delta in deltas { delta.writeDelta(to: &json) }
            json.endArray()
        }
        json.endObject()
        return json.bytes
    }

    private func writeDelta(to json: inout JSONWriter) {
        guard case .object(let members) = content else { return write(to: &json) }
        json.beginObject()
        for member in members {
            json.name(member.name)
            if member.name == "p", case .object = member.value.content {
                json.text(String(decoding: member.value.compact, as: UTF8.self))
            } else {
                member.value.write(to: &json)
            }
        }
        if self["t"] == nil { json.member("t", MockScript.seconds) }
        json.endObject()
    }
}
