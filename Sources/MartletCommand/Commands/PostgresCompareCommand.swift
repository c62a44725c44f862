import MartletPostgres
import PostgresKit

extension CommandDescription {
    private static let unsendable = """
        A row that no device can be sent stays listed until it is corrected; the server's log says what is \
        the matter with it.
        """

    static let postgresCompare = CommandDescription(
        name: "postgres compare",
        summary: "compare tables of a PostgreSQL database with the log",
        discussion: """
            Looks for rows that were written past the log, as with triggers switched off, and for
            records whose rows are gone. With --repair they are taken into the log as a change of
            another program: devices receive them, and go on from where they are. Servers may run. Ends
            with 1 where something differs and is not repaired.

            Which rows may differ is told by the transactions that wrote them; of these the values are
            compared with those that the log's entries gave them. With --values this is done with all rows,
            which also finds a row whose change was lost on its way to the log. What compaction has
            emptied is not known: such a row is listed if a later transaction wrote it.

            Rows that no device can be sent are listed, too, until they are corrected in the database.
            """,
        options: [
            postgresOption,
            Option(name: "repair", help: "take what differs into the log"),
            Option(
                name: "values",
                help: "compare values too, as far as the log keeps them: reads log and tables whole"
            ),
        ],
        examples: [
            Example("postgres compare --postgres postgresql://app@localhost/club", "what differs"),
            Example("postgres compare --repair", "have devices receive it"),
        ]
    ) { arguments, console in
        let connection = try connection(arguments)
        let repairs = arguments.has("repair")
        let found = try PostgresComparison.run(
            on: connection, repairs: repairs, comparesValues: arguments.has("values"))
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("changed", .integer(found.changed)), ("deleted", .integer(found.deleted)),
                    ("repaired", .boolean(repairs)), ("leftOut", .integer(found.leftOut)),
                    (
                        "records",
                        .list(
                            found.records.map {
                                .object([
                                    ("type", .text($0.type)), ("id", .text($0.id)),
                                    ("deleted", .boolean($0.isDeleted)),
                                    ("leftOut", .boolean($0.isLeftOut)),
                                ])
                            })
                    ),
                ]).description)
        } else if found.isEmpty {
            console.print("The tables are what the log says.")
        } else {
            console.print("\(found.changed) rows are new or other, \(found.deleted) are gone.")
            if found.leftOut > 0 {
                console.print("\(found.leftOut) rows are left out: no device can be sent them.")
            }
            for record in found.records {
                let what = record.isDeleted ? " (gone)" : record.isLeftOut ? " (left out)" : ""
                console.print("- \(record.type) \(record.id)\(what)")
            }
            console.note(
                repairs
                    ? "The next server that runs takes them into the log. \(unsendable)"
                    : "Nothing was changed; --repair has devices receive them. \(unsendable)")
        }
        return found.isEmpty || repairs ? .done : .failed
    }
}
