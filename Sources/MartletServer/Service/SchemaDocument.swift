internal import MartletModel
internal import MartletProtocol

/// Makes the answer to `GET /schema`.
enum SchemaDocument {
    /// Returns the document, which is JSON.
    ///
    /// - Parameter ddl: The statements that make the tables, without the server's triggers.
    /// - Parameter dataSet: The data set's identity, so that a new device knows to which data set
    ///   the tables belong.
    static func bytes(_ schema: Schema, ddl: String, dataSet: String) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("dataSet", dataSet)
        json.member("hash", schema.fingerprint)
        json.member("protocol", WireVersion.current)
        json.member("ddl", ddl)
        json.name("types")
        json.beginArray()
        for type in schema.types { write(type, to: &json) }
        json.endArray()
        json.endObject()
        return json.bytes
    }

    private static func write(_ type: EntityType, to json: inout JSONWriter) {
        json.beginObject()
        json.member("name", type.name)
        json.member("key", type.key)
        json.member("keyKind", type.keyKind.rawValue)
        // There is only one conflict policy yet.
        json.member("policy", "refuse")
        json.name("attributes")
        json.beginArray()
        for attribute in type.attributes {
            json.beginObject()
            json.member("name", attribute.name)
            json.member("kind", attribute.kind.rawValue)
            json.member("required", attribute.isRequired)
            json.member("default", attribute.hasDefault)
            json.member("generated", attribute.isGenerated)
            json.endObject()
        }
        json.endArray()
        json.name("references")
        json.beginArray()
        for reference in type.references {
            json.beginObject()
            json.member("attribute", reference.attribute)
            json.member("target", reference.target)
            json.member("onDelete", reference.onDelete.rawValue)
            json.endObject()
        }
        json.endArray()
        json.name("uniques")
        json.beginArray()
        for columns in type.uniques {
            json.beginArray()
            columns.forEach { json.text($0) }
            json.endArray()
        }
        json.endArray()
        json.endObject()
    }
}
