import MartletModel
package import MartletServerCore
package import SQLiteKit
import SQLiteRecords

extension SeedingPlan {
    /// Checks the rules against the tables that they name.
    ///
    /// - Throws: `SchemaError`, which names the class and the correction.
    package func check(on connection: Connection) throws {
        let schema = try SchemaReader.read(connection)
        for part in classes {
            for (type, rows) in part.types.sorted(by: { $0.key < $1.key }) {
                guard schema[type] != nil else {
                    throw SchemaError(
                        "the seeding class “\(part.name)” names the type “\(type)”, which the"
                            + " schema does not have; correct the name")
                }
                guard case .matching(let rule) = rows else { continue }
                do throws(SQLiteError) {
                    _ = try connection.prepare(
                        "SELECT 1 FROM \(SQLName.quoted(type)) WHERE (\(rule)) IS TRUE")
                } catch {
                    throw SchemaError(
                        "the seeding class “\(part.name)” has a rule for “\(type)” that is no SQL"
                            + " expression over its columns: \(error.message)")
                }
            }
        }
    }
}
