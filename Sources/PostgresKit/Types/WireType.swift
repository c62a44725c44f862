/// The form of a type's values in PostgreSQL's binary format.
enum WireType: Hashable, Sendable {
    case boolean
    case int2, int4, int8
    /// An unsigned number of 32 bits: oid, xid.
    case unsigned
    case float4, float8
    case numeric
    /// The bytes of a text: text, varchar, char, name, xml, enumerations.
    case text
    case json, jsonb
    case uuid
    case bytea
    case date, time, timestamp, timestamptz
    /// An array with elements of the type with this number.
    case array(UInt32)
    case unknown

    /// The types that have the same numbers in every PostgreSQL (`pg_type.dat`).
    static let builtIn: [UInt32: WireType] = [
        16: .boolean, 17: .bytea, 18: .text, 19: .text, 20: .int8, 21: .int2, 23: .int4,
        25: .text, 26: .unsigned, 28: .unsigned, 114: .json, 142: .text, 700: .float4,
        701: .float8, 705: .text, 1042: .text, 1043: .text, 1082: .date, 1083: .time,
        1114: .timestamp, 1184: .timestamptz, 1700: .numeric, 2278: .text, 2950: .uuid,
        3802: .jsonb, 5069: .int8,
        1000: .array(16), 1001: .array(17), 1002: .array(18), 1003: .array(19), 1005: .array(21),
        1007: .array(23), 1009: .array(25), 1014: .array(1042), 1015: .array(1043),
        1016: .array(20), 1021: .array(700), 1022: .array(701), 1028: .array(26),
        1182: .array(1082), 1183: .array(1083), 1115: .array(1114), 1185: .array(1184),
        1231: .array(1700), 2951: .array(2950), 199: .array(114), 3807: .array(3802),
    ]
}
