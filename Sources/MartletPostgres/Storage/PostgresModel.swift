import MartletModel
import MartletServerCore
import PostgresKit

/// A session's knowledge of the tables. The session reads it when it connects.
struct PostgresModel {
    /// A foreign key of one column, by its name.
    struct ReferenceName: Hashable {
        let table: String
        let constraint: String
    }

    /// The column of such a foreign key.
    struct ReferenceColumn: Hashable {
        let type: Int
        let attribute: String
    }

    let schema: Schema
    /// The formats of the tables, in the order of the schema's types.
    let forms: [TableFormat]
    let cascades: CascadeMap
    /// The position of a type by its number in Martlet's tables.
    let positions: [Int64: Int]
    /// The positions of the types whose tables have constraints that are checked at the end of the
    /// set.
    let deferring: Set<Int>
    /// The columns of foreign keys, by the present names of the table and the constraint.
    let referenceColumns: [ReferenceName: ReferenceColumn]

    /// Reads the model on a connection.
    /// - Throws: `PostgresError` if the catalogue cannot be read, or the tables can no longer be
    ///   synchronised.
    init(on connection: PostgresConnection) throws(PostgresError) {
        let read: PostgresSchema
        do {
            read = try PostgresSchema.read(connection)
        } catch let error as PostgresError {
            throw error
        } catch {
            throw PostgresError(.statement, "\(error)")
        }
        try self.init(schema: read.schema, tables: read.tables, connection)
    }

    /// Makes a model of tables that were read.
    /// - Throws: `PostgresError` if the catalogue cannot be read.
    init(
        schema: Schema, tables: [PostgresTable], _ connection: PostgresConnection
    ) throws(PostgresError) {
        self.schema = schema
        forms = tables.enumerated().map { TableFormat(position: $0, table: $1, schema: schema) }
        cascades = CascadeMap(schema)
        var positions: [Int64: Int] = [:]
        for (position, table) in tables.enumerated() { positions[table.number] = position }
        self.positions = positions
        let relations = PostgresArray(tables.map { .integer(Int64($0.relation)) })
        let answers = try connection.pipeline([
            [
                PostgresStatement(
                    """
                    SELECT DISTINCT tgrelid::bigint FROM pg_catalog.pg_trigger \
                    WHERE tgdeferrable AND tgrelid::bigint = ANY ($1::bigint[])
                    """, [.array(relations)]),
                PostgresStatement(
                    """
                    SELECT r.relname::text, c.conname::text, a.attname::text, r.oid::bigint \
                    FROM pg_catalog.pg_constraint AS c \
                    JOIN pg_catalog.pg_class AS r ON r.oid = c.conrelid \
                    JOIN pg_catalog.pg_attribute AS a \
                    ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] \
                    WHERE c.contype = 'f' AND array_length(c.conkey, 1) = 1 \
                    AND c.conrelid::bigint = ANY ($1::bigint[])
                    """, [.array(relations)]),
            ]
        ])
        var indices: [Int64: Int] = [:]
        for (position, table) in tables.enumerated() { indices[Int64(table.relation)] = position }
        var deferring: Set<Int> = []
        let triggers = try answers[0][0].get()
        for row in 0..<triggers.count {
            if let index = indices[try triggers.integer(row, 0)] { deferring.insert(index) }
        }
        self.deferring = deferring
        var columns: [ReferenceName: ReferenceColumn] = [:]
        let keys = try answers[0][1].get()
        for row in 0..<keys.count {
            let name = ReferenceName(
                table: try keys.text(row, 0), constraint: try keys.text(row, 1))
            guard let index = indices[try keys.integer(row, 3)] else { continue }
            columns[name] = ReferenceColumn(type: index, attribute: try keys.text(row, 2))
        }
        referenceColumns = columns
    }
}
