internal import SQLiteKit

/// A decoder for the rows of one statement. One decoder serves all rows.
final class RowDecoder: NamedValues {
    private let statement: Statement
    private unowned let layout: RowLayout

    init(statement: Statement, layout: RowLayout) {
        self.statement = statement
        self.layout = layout
        super.init(names: layout.names)
    }

    /// Returns whether the decoder reads the rows of this statement.
    func reads(_ other: Statement) -> Bool { other === statement }

    func decode<Result: Decodable>(_ type: Result.Type) throws -> Result {
        try NamedValuesDecoder(self).decode(type)
    }

    override var keepsContainer: Bool { true }
    override func anyPosition(of name: String) -> Int? { layout.index(of: name) }
    override func isNull(at position: Int) -> Bool { statement.isNull(Int32(position)) }
    override func integer(at position: Int) -> Int64? { statement.storedInteger(Int32(position)) }
    override func real(at position: Int) -> Double? { statement.storedReal(Int32(position)) }

    override func text(at position: Int) throws -> String? {
        if let text = statement.storedText(Int32(position)) { return text }
        // The value has another kind, or is not valid UTF-8; `text` reports the latter.
        return try Row(statement, layout: layout).text(at: position)
    }

    override func value(at position: Int) throws -> SQLValue {
        try Row(statement, layout: layout).value(at: position)
    }

    override func read<Value: ColumnValue>(
        _ type: Value.Type, at position: Int
    ) throws -> Value {
        try Value._read(Row(statement, layout: layout), at: position)
    }
}

extension RowLayout {
    /// Returns the decoder of the statement's rows. It is created once and kept.
    func decoder(for statement: Statement) -> RowDecoder {
        if let kept = companion as? KeptDecoder, kept.decoder.reads(statement) {
            return kept.decoder
        }
        let kept = KeptDecoder(RowDecoder(statement: statement, layout: self))
        companion = kept
        return kept.decoder
    }
}

/// An owner of a decoder, which breaks the reference cycle through the decoder's container.
private final class KeptDecoder {
    let decoder: RowDecoder

    init(_ decoder: RowDecoder) {
        self.decoder = decoder
    }

    deinit {
        decoder.forgetContainer()
    }
}
