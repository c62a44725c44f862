/// Computes the hash of a schema: FNV-1a, 64 bits (Fowler, Noll, Vo), over a plain listing.
///
/// It detects accidental differences, not attacks; no secret depends on it.
enum SchemaFingerprint {
    static func of(_ types: [EntityType]) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ text: String) {
            for byte in text.utf8 {
                hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
            hash = (hash ^ 0xff) &* 0x100_0000_01b3
        }
        for type in types.sorted(by: { $0.name < $1.name }) {
            add("type")
            add(type.name)
            add(type.key)
            add(type.keyKind.rawValue)
            for attribute in type.attributes.sorted(by: { $0.name < $1.name }) {
                add(attribute.name)
                add(attribute.kind.rawValue)
            }
            for reference in type.references.sorted(by: { $0.attribute < $1.attribute }) {
                add(reference.attribute)
                add(reference.target)
                add(reference.onDelete.rawValue)
            }
        }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
