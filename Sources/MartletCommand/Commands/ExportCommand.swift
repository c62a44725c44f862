import Foundation
import Martlet
import MartletTransfer

extension CommandDescription {
    static let exportRecords = CommandDescription(
        name: "export",
        summary: "write a device file's records as CSV",
        discussion: "One file for each type, all of one moment. `martlet import` reads them back.",
        arguments: [
            Argument(name: "FILE", help: "the device file"),
            Argument(name: "FOLDER", help: "where the CSV files go"),
        ],
        options: [
            Option(
                name: "type", value: "TYPE", help: "only this type; may be repeated", repeats: true)
        ],
        examples: [
            Example("export team.sqlite out/", "everything"),
            Example("export team.sqlite out/ --type players --type teams", "two types"),
        ]
    ) { arguments, console in
        let device = try await DeviceFile.open(arguments)
        let tables = try await Exporter(client: device.client).run(
            schema: try await device.schema, types: arguments.values["type"],
            folder: URL(fileURLWithPath: arguments.positional[1]))
        await device.client.close()
        if arguments.isJSON {
            let rows = tables.map { table in
                JSONText.object([
                    ("type", .text(table.type)), ("file", .text(table.file)),
                    ("records", .integer(Int64(table.recordCount))),
                    ("unreadable", .list(table.unreadable.map { .text($0) })),
                ])
            }
            console.print(JSONText.object([("tables", .list(rows))]).description)
        } else {
            for table in tables { console.print("\(table.file)  \(table.recordCount) records") }
            for note in tables.flatMap(\.unreadable) { console.note(note) }
        }
        return .done
    }

    static let schema = CommandDescription(
        name: "schema",
        summary: "find out a schema from CSV files",
        discussion: """
            Prints SQL that `serve` and `init` take with --schema. A column id is the key; a column
            NAME_id whose values are all ids of the file NAME, or its plural, is a reference.
            """,
        arguments: [Argument(name: "CSV", help: "CSV files, or folders of them", repeats: true)],
        examples: [Example("schema season-2026/ > schema.sql", "to be read and corrected")]
    ) { arguments, console in
        let inference = try SchemaInference(try CSVFile.find(arguments.positional))
        if arguments.isJSON {
            console.print(JSONText.object([("schema", .text(inference.script))]).description)
        } else {
            for note in inference.notes { console.note("-- " + note) }
            console.write(inference.script)
        }
        return .done
    }
}
