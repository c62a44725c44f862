import Foundation
import MartletModel
import MartletProtocol

/// Any JSON document as Foundation's Codable sees it: the oracle.
indirect enum Tree: Decodable, Equatable {
    case value(Value)
    case list([Tree])
    case object([String: Tree])

    init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: Name.self) {
            var members: [String: Tree] = [:]
            for key in container.allKeys {
                members[key.stringValue] = try container.decode(Tree.self, forKey: key)
            }
            self = .object(members)
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [Tree] = []
            while !container.isAtEnd { elements.append(try container.decode(Tree.self)) }
            self = .list(elements)
        } else {
            self = .value(try Self.scalar(decoder.singleValueContainer()))
        }
    }

    private static func scalar(_ container: any SingleValueDecodingContainer) throws -> Value {
        if container.decodeNil() { return .null }
        if let flag = try? container.decode(Bool.self) { return .boolean(flag) }
        if let number = try? container.decode(Int64.self) { return .integer(number) }
        if let number = try? container.decode(Double.self) { return .real(number) }
        return .text(try container.decode(String.self))
    }

    /// The same document as Martlet's reader sees it.
    init(_ bytes: [UInt8]) throws(WireFault) {
        var reader = JSONReader(bytes)
        self = try Tree(&reader)
        try reader.finish()
    }

    private init(_ reader: inout JSONReader) throws(WireFault) {
        switch reader.nextKind() {
        case .object:
            var members: [String: Tree] = [:]
            try reader.readObject { (reader, name) throws(WireFault) in
                members[name] = try Tree(&reader)
            }
            self = .object(members)
        case .array:
            var elements: [Tree] = []
            try reader.readArray { (reader) throws(WireFault) in
                elements.append(try Tree(&reader))
            }
            self = .list(elements)
        default: self = .value(try reader.readValue())
        }
    }

    private struct Name: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Foundation does not keep 2 and 2.0 apart.
    static func == (left: Tree, right: Tree) -> Bool {
        switch (left, right) {
        case (.list(let a), .list(let b)): a == b
        case (.object(let a), .object(let b)): a == b
        case (.value(.integer(let a)), .value(.real(let b))): Double(a) == b
        case (.value(.real(let a)), .value(.integer(let b))): a == Double(b)
        case (.value(let a), .value(let b)): a == b
        default: false
        }
    }
}
