package import MartletModel

/// A CSV file as a source of records: its first line names the columns.
package struct CSVSource: ImportSource {
    package let file: CSVFile
    package var type: String { file.type }
    package var label: String { file.name }

    package init(_ file: CSVFile) {
        self.file = file
    }

    /// Starts reading after the line of names.
    /// - Throws: `CSVFault` for a column that the type does not have, that occurs twice or that
    ///   cannot be imported, and for a required attribute without a column.
    package func open(_ type: EntityType) throws -> any ImportCursor {
        var reader = try file.open()
        guard let header = try reader.next() else {
            throw CSVFault(
                file: label, line: 1, message: "the file is empty; its first line names the columns"
            )
        }
        var hash = ContentHash()
        var columns: [ImportColumn] = []
        var names: Set<String> = []
        for field in header {
            hash.add(field.text)
            guard names.insert(field.text).inserted else {
                throw CSVFault(
                    file: label, line: 1, column: field.text, message: "the column is there twice")
            }
            columns.append(try column(field.text, of: type))
        }
        for attribute in type.attributes
        where attribute.isRequired && !attribute.hasDefault && !names.contains(attribute.name) {
            throw CSVFault(
                file: label, line: 1, column: attribute.name,
                message: "\(type.name) requires this column, and the file has none of that name")
        }
        return CSVCursor(
            file: label, columns: columns, headings: header.map(\.text), reader: reader, hash: hash)
    }

    private func column(_ name: String, of type: EntityType) throws -> ImportColumn {
        if name == type.key { return .key }
        guard let attribute = type[attribute: name] else {
            let known = ([type.key] + type.attributes.map(\.name)).joined(separator: ", ")
            throw CSVFault(
                file: label, line: 1, column: name,
                message: "\(type.name) has no such attribute; it has \(known)")
        }
        guard !attribute.isGenerated else {
            throw CSVFault(
                file: label, line: 1, column: name,
                message: "the database computes this attribute; leave the column out")
        }
        if let reference = type.reference(of: name) { return .reference(attribute, reference) }
        return .attribute(attribute)
    }
}

/// Reads the records of a CSV file.
struct CSVCursor: ImportCursor {
    let file: String
    let columns: [ImportColumn]
    let headings: [String]
    private var reader: CSVReader
    private var hash: ContentHash

    init(
        file: String, columns: [ImportColumn], headings: [String], reader: CSVReader,
        hash: ContentHash
    ) {
        self.file = file
        self.columns = columns
        self.headings = headings
        self.reader = reader
        self.hash = hash
    }

    var line: Int { reader.line }
    var fingerprint: UInt64 { hash.value }

    mutating func next() throws -> [Value]? {
        guard let record = try reader.next() else { return nil }
        var values: [Value] = []
        values.reserveCapacity(columns.count)
        for (index, field) in record.enumerated() {
            let value = try value(field, column: index)
            hash.add(value)
            values.append(value)
        }
        return values
    }

    private func value(_ field: CSVField, column index: Int) throws -> Value {
        let result: Result<Value, FieldValue.Mismatch>
        switch columns[index] {
        case .key:
            result =
                field.text.isEmpty
                ? .failure(.init("expected an id, found an empty field"))
                : .success(FieldValue.given(field.text))
        case .reference(let attribute, _):
            result =
                field.isNull
                ? FieldValue.read(field, as: attribute) : .success(FieldValue.given(field.text))
        case .attribute(let attribute):
            result = FieldValue.read(field, as: attribute)
        }
        switch result {
        case .success(let value): return value
        case .failure(let mismatch):
            throw CSVFault(
                file: file, line: line, column: headings[index], message: mismatch.message)
        }
    }
}
