/// A signal that a query used a table with a declaration before the table was created. The
/// database then creates the table and runs the work again. No app sees this error.
package struct MissingTable: Error {
    package let name: String
    package let declaration: String
    /// Whether the table holds only data that can be rebuilt from other tables. Its declaration is
    /// then any SQL, and is not checked.
    package var isDerived = false

    /// The error for a declaration that does not create this table.
    package var isNotDeclared: StoreError {
        StoreError(
            .schema,
            "The declaration of the table “\(name)” makes no table of that name; correct it.")
    }

    /// How many missing tables one piece of work may meet. More of them mean a loop.
    package static let limit = 100
}
